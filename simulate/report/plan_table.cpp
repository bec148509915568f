#include "simulate/report/plan_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/job/idle_keys.h"
#include "simulate/job/layout_metrics.h"
#include "simulate/report/cells.h"
#include "simulate/report/overlap_advice.h"

namespace tbdsim {
namespace {

constexpr std::size_t kNoteWidth = 100;

struct NamedPart {
  std::string_view name;
  Seconds StepParts::*time;
};
constexpr auto kParts = std::to_array<NamedPart>({{"compute", &StepParts::compute},
                                                  {"recomputation", &StepParts::again},
                                                  {"waiting for launches", &StepParts::launch},
                                                  {"collectives within blocks", &StepParts::within},
                                                  {"sends between stages", &StepParts::sends},
                                                  {"bubble", &StepParts::bubble},
                                                  {"exchange between replicas", &StepParts::replicas},
                                                  {"update", &StepParts::update},
                                                  {"waiting for the slowest rank", &StepParts::slowest},
                                                  {"once a step", &StepParts::other}});

constexpr auto kResultColumns = std::to_array<std::string_view>({"step_time",
                                                                 "tokens_per_second",
                                                                 "mfu",
                                                                 "compute_time",
                                                                 "recompute_time",
                                                                 "launch_time",
                                                                 "tensor_time",
                                                                 "send_time",
                                                                 "bubble_time",
                                                                 "replica_time",
                                                                 "update_time",
                                                                 "slowest_time",
                                                                 "other_time",
                                                                 "allocated_first",
                                                                 "allocated_last",
                                                                 "reserved_first",
                                                                 "reserved_last",
                                                                 "device_first",
                                                                 "device_last",
                                                                 "tokens_per_second_low",
                                                                 "tokens_per_second_high",
                                                                 "headroom"});

Cell seconds_cell(Seconds time) { return number_cell(time.si(), to_text(time)); }
std::string gib_text(Bytes bytes) { return fmt::format("{:.1f}", in_unit(bytes, "GiB")); }
Cell gib_cell(Bytes bytes) { return number_cell(bytes.si(), gib_text(bytes)); }
Cell share_cell(Seconds part, const LayoutPrediction& p) { return bare_percent_cell(part / p.step, 1); }

// Columns of layouts; rates and rents are of what the job counts.
std::vector<Column> columns_of(const ResolvedJob& job) {
  return {{"list", ""},  // best or front
          {"layout", "layout"},
          {"step_time", "step", true},
          {"tokens_per_second", job.counted() + "s/s", true},
          {"tokens_per_second_low", ""},
          {"tokens_per_second_high", ""},
          {"interval", "+- %", true},
          {"mfu", "MFU", true},
          {"exposed_share", "comm.", true},
          {"bubble_share", "bubble", true},
          {"recompute_share", "again", true},
          {"memory", "GiB", true},
          {"headroom", "free", true},
          {"cost_per_token", "USD/G" + job.counted(), true}};
}

// Rent of all GPUs for one of what the job counts; no value where the GPU has no price.
Cell cost_cell(const JobPrediction& p) {
  const std::optional<double> each = find_layout_metric("cost_per_token").value(p);
  return each ? number_cell(*each, fmt::format("{:.0f}", *each * kGiga)) : none_cell();
}

std::vector<Cell> row_of(std::string_view list, const LayoutPrediction& layout, const ResolvedJob& job) {
  const JobPrediction p = with_interval(layout, job);
  const Interval tokens = p.tokens_interval();
  return {text_cell(list),
          text_cell(to_text(layout.layout)),
          seconds_cell(layout.step),
          count_cell(std::round(layout.tokens_per_second)),
          number_cell(tokens.low, ""),
          number_cell(tokens.high, ""),
          bare_percent_cell(p.factor() - 1, 0),
          bare_percent_cell(layout.mfu, 1),
          share_cell(layout.exposed(), layout),
          share_cell(layout.parts.bubble, layout),
          share_cell(layout.parts.again, layout),
          gib_cell(layout.most.device),
          gib_cell(job.usable() - layout.most.device),
          cost_cell(p)};
}

struct NamedTime {
  std::string name;
  Seconds time;
};

// Parts of a step with collectives by the dimension that they run over; they sum to the step.
std::vector<NamedTime> named_times(const LayoutPrediction& p) {
  std::vector<NamedTime> times;
  for (const NamedPart& part : kParts) {
    if (part.time != &StepParts::within) {
      times.push_back({std::string(part.name), p.parts.*part.time});
      continue;
    }
    for (const LayoutDimension within :
         {LayoutDimension::tensor, LayoutDimension::context, LayoutDimension::expert}) {
      const auto d = static_cast<std::size_t>(within);
      times.push_back(
          {fmt::format("{}-parallel collectives", kDimensionNames[d]), p.communication[d].exposed});
    }
  }
  return times;
}

// "compute 1.2 s less (4.1 %), bubble 0.1 s more (0.3 %)": the parts by which two steps differ most, in per
// cent of the slower one.
std::string difference(const LayoutPrediction& a, const LayoutPrediction& b) {
  constexpr std::size_t kShown = 4;
  const std::vector<NamedTime> of_a = named_times(a), of_b = named_times(b);
  std::vector<std::pair<double, std::string_view>> parts;
  for (std::size_t i = 0; i < of_a.size(); ++i)
    parts.emplace_back((of_b[i].time - of_a[i].time).si(), of_a[i].name);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& x, const auto& y) { return std::abs(x.first) > std::abs(y.first); });
  std::string text;
  for (std::size_t i = 0; i < kShown && std::abs(parts[i].first) > kMicro; ++i) {
    const double part = std::abs(parts[i].first);
    text += fmt::format("{}{} {} {} ({:.1f} %)", i > 0 ? ", " : "", parts[i].second, to_text(Seconds(part)),
                        parts[i].first > 0 ? "less" : "more", kPercent * part / b.step.si());
  }
  return text.empty() ? "the same time with less memory" : text;
}

// Why the first layout is the best: where its step is shorter than the next one's, and what it pays for that.
std::string reason(const LayoutPrediction& first, const LayoutPrediction& next) {
  const Bytes more = first.most.device - next.most.device;
  const std::string memory = more == Bytes(0)  ? "as much"
                             : more < Bytes(0) ? to_text(Bytes(0) - more) + " less"
                                               : to_text(more) + " more";
  return fmt::format("{} faster than {}: {}; {} memory", to_text(next.step - first.step),
                     to_text(next.layout), difference(first, next), memory);
}

void add_assumptions(Table& table, const ResolvedJob& job) {
  for (const Assumption& a : job.assumed)
    table.totals.emplace_back(a.what, text_cell(fmt::format("{} ({})", a.value, a.why)));
}

void add_lines(std::vector<std::string>& notes, const std::string& text) {
  for (std::string& line : wrapped(text, kNoteWidth)) notes.push_back(std::move(line));
}

// Choices without effect, or that mean something else than their names say.
void add_notes_of_keys(std::vector<std::string>& notes, const JobPrediction& prediction) {
  const ResolvedJob& job = *prediction.job;
  for (const std::string& note : notes_of_idle_keys(job, prediction.layout.layout)) add_lines(notes, note);
  if (job.captured() && job.inputs.job.sequence == 1)
    add_lines(notes, fmt::format("Tokens are {}s here.", job.sample));
}

void add_advice(std::vector<std::string>& notes, const LayoutPrediction& p, const ResolvedJob& job) {
  for (const std::string& line : overlap_advice(p, job.inputs.stack)) add_lines(notes, line);
}

const std::vector<Column> kPartColumns = {{"part", "part"}, {"value", "amount", true}, {"share", "%", true}};

void add_memory(Table& table, const RankMemory& m, const std::string& where) {
  const std::pair<std::string_view, Bytes> rows[] = {
      {"parameters", m.parameters},   {"gradients", m.gradients}, {"optimizer state", m.optimizer},
      {"activations", m.activations}, {"working", m.working},     {"allocated", m.allocated},
      {"reserved", m.reserved},       {"on the device", m.device}};
  for (const auto& [name, bytes] : rows)
    table.rows.push_back({text_cell(fmt::format("{}, {}", name, where)),
                          number_cell(bytes.si(), fmt::format("{:.2f} GiB", in_unit(bytes, "GiB"))),
                          none_cell()});
}

// The fastest layout of each band of memory, of a front that is fastest first: a band ends a tenth below
// where it begins.
std::vector<LayoutPrediction> spread(const std::vector<LayoutPrediction>& front) {
  constexpr double kBand = 0.9;
  std::vector<LayoutPrediction> kept;
  double last = -1;
  for (const LayoutPrediction& p : front) {
    const double band = std::floor(std::log(p.most.device / front[0].most.device) / std::log(kBand));
    if (band > last) kept.push_back(p);
    last = band;
  }
  return kept;
}

void add_notes_of_columns(std::vector<std::string>& notes, const ResolvedJob& job) {
  add_lines(
      notes,
      fmt::format(
          "+- %: 80 % of measured steps are expected within; comm.: exposed collectives and sends; bubble: "
          "stages wait for one another; again: recomputation; each in % of the step. GiB: memory of the "
          "fullest "
          "GPU as nvidia-smi shows it; free: what it has more. USD/G{0}: rent of all GPUs for 10^9 {0}s, on "
          "demand.",
          job.counted()));
  if (!job.gpu->price_per_hour)
    add_lines(notes, fmt::format("No rent of {} is known; --set gpu.price_per_hour='0.50 USD/h' shows the "
                                 "cost at one.",
                                 job.gpu->name));
}

}  // namespace

std::vector<Table> plan_tables(const Plan& plan, const ResolvedJob& job, bool whole_front) {
  Table best;
  best.name = "layouts";
  best.preface = {title_of(job), fmt::format("{} legal layouts, {} fit", plan.searched, plan.fitting)};
  best.columns = columns_of(job);
  for (const LayoutPrediction& p : plan.best) best.rows.push_back(row_of("best", p, job));
  if (plan.best.empty() && !plan.smallest.empty()) {
    best.rows.push_back(row_of("smallest", plan.smallest[0], job));
    add_lines(best.notes, "No layout fits; this one lacks least.");
  }
  add_assumptions(best, job);
  add_notes_of_columns(best.notes, job);
  const auto is_full = [&](const LayoutPrediction& p) {
    return gib_text(std::max(job.usable() - p.most.device, Bytes(0))) == gib_text(Bytes(0));
  };
  if (std::any_of(plan.best.begin(), plan.best.end(), is_full))
    add_lines(best.notes,
              "With 0.0 free the tensors fit, but not what a caching allocator usually holds beside them: "
              "fragments may make such a run fail.");
  if (plan.best.size() > 1) {
    const std::string why = reason(plan.best[0], plan.best[1]);
    add_lines(best.notes, fmt::format("The first is {}.", why));
  }
  if (!plan.best.empty()) add_advice(best.notes, plan.best[0], job);
  std::vector<Table> tables{std::move(best)};
  if (plan.pareto.size() > 1) {
    Table front;
    front.name = "layouts";
    front.preface = {"", "Less memory costs time: no other layout is as fast with as little"};
    front.columns = columns_of(job);
    for (const LayoutPrediction& p : whole_front ? plan.pareto : spread(plan.pareto))
      front.rows.push_back(row_of("front", p, job));
    if (front.rows.size() < plan.pareto.size())
      add_lines(front.notes, fmt::format("The fastest of each tenth of memory; --format json or csv has all "
                                         "{}.",
                                         plan.pareto.size()));
    tables.push_back(std::move(front));
  }
  return tables;
}

namespace {

Table communication_table(const LayoutPrediction& p) {
  Table table;
  table.name = "parts";
  table.preface = {"communication of a step by dimension: all of it, and what the step waits for"};
  table.columns = kPartColumns;
  for (std::size_t d = 0; d < p.communication.size(); ++d) {
    const DimensionTime& time = p.communication[d];
    if (time.busy == Seconds(0)) continue;
    for (const auto& [what, seconds] : {std::pair{"all", time.busy}, std::pair{"exposed", time.exposed}})
      table.rows.push_back({text_cell(fmt::format("{}, {}", kDimensionNames[d], what)), seconds_cell(seconds),
                            share_cell(seconds, p)});
  }
  return table;
}

}  // namespace

std::vector<Table> layout_tables(const JobPrediction& prediction) {
  const LayoutPrediction& p = prediction.layout;
  const ResolvedJob& job = *prediction.job;
  const auto gpus = static_cast<double>(job.inputs.job.gpus);
  const auto micros = micro_batches(p.layout, job.inputs.job);
  Table table;
  table.name = "parts";
  table.preface = {
      title_of(job), fmt::format("{}, {} micro-batch{}", to_text(p.layout), micros, micros == 1 ? "" : "es"),
      fmt::format("{} a step, {:.0f} {}s/s (80 %: {:.0f} to {:.0f}), {:.0f} {}s/s a GPU, MFU {:.1f} %",
                  to_text(p.step), p.tokens_per_second, job.counted(), prediction.tokens_interval().low,
                  prediction.tokens_interval().high, p.tokens_per_second / gpus, job.counted(),
                  kPercent * p.mfu)};
  table.columns = kPartColumns;
  for (const NamedPart& part : kParts)
    table.rows.push_back(
        {text_cell(part.name), seconds_cell(p.parts.*part.time), share_cell(p.parts.*part.time, p)});
  add_memory(table, p.first, p.layout.pp > 1 ? "first stage" : "each rank");
  if (p.layout.pp > 1) add_memory(table, p.last, "last stage");
  add_assumptions(table, job);
  for (const auto& [name, rate] : {std::pair{"tokens_per_second_low", prediction.tokens_interval().low},
                                   std::pair{"tokens_per_second_high", prediction.tokens_interval().high}})
    table.totals.emplace_back(name, number_cell(rate, fmt::format("{:.0f}", rate)));
  const Bytes most = p.most.device, usable = job.usable();
  add_lines(table.notes,
            most <= usable
                ? fmt::format("{} of {} are free.", to_text(usable - most), to_text(usable))
                : fmt::format("{} are lacking: a GPU has {}.", to_text(most - usable), to_text(usable)));
  add_lines(table.notes, fmt::format("Of the interval, in %: {}.", parts_text(prediction.deviations)));
  add_advice(table.notes, p, job);
  add_notes_of_keys(table.notes, prediction);
  std::vector<Table> tables{std::move(table)};
  Table communication = communication_table(p);
  if (!communication.rows.empty()) tables.push_back(std::move(communication));
  return tables;
}

Table remedies_table(const std::vector<Remedy>& remedies, const ResolvedJob& job) {
  Table table;
  table.name = "remedies";
  table.preface = {"", "what would make it fit, fastest first"};
  table.columns = {{"change", "change"},
                   {"layout", "layout"},
                   {"step_time", "step", true},
                   {"memory", "GiB", true},
                   {"headroom", "free", true}};
  for (const Remedy& remedy : remedies) {
    const LayoutPrediction& p = remedy.prediction;
    table.rows.push_back({text_cell(remedy.change), text_cell(to_text(p.layout)), seconds_cell(p.step),
                          gib_cell(p.most.device), gib_cell(job.usable() - p.most.device)});
  }
  return table;
}

Table changed_table(const JobPrediction& before, const JobPrediction& after, const SpecChanges& changes) {
  Table table;
  table.name = "metrics";
  std::string with = "with";
  for (const SpecChange& change : changes) with += " " + to_text(change);
  table.preface = {title_of(*before.job), with, "before: " + to_text(before.layout.layout),
                   "after: " + to_text(after.layout.layout)};
  table.columns = {
      {"metric", "metric"}, {"before", "before", true}, {"after", "after", true}, {"change", "change", true}};
  for (const LayoutMetric& metric : layout_metrics()) {
    const std::optional<double> was = metric.value(before), is = metric.value(after);
    // Keys of the searched layout stand above the table.
    if ((!was && !is) || metric.metric.name.starts_with("layout_")) continue;
    const auto cell = [&](const std::optional<double>& value) {
      return value ? number_cell(*value, metric_text(*value, std::string(metric.metric.unit))) : none_cell();
    };
    const bool change = was && is && *was != 0;
    table.rows.push_back({text_cell(metric.metric.name), cell(was), cell(is),
                          change ? signed_percent_cell(*is / *was - 1) : none_cell()});
  }
  add_assumptions(table, *before.job);
  if (!after.fits()) table.notes.push_back("After the changes it does not fit into the memory of a GPU.");
  return table;
}

Table helps_table(const JobPrediction& prediction, std::vector<Help> helps, const std::string& change) {
  std::stable_sort(helps.begin(), helps.end(), [](const Help& a, const Help& b) { return a.step < b.step; });
  const Seconds now = prediction.layout.step;
  Table table;
  table.name = "helps";
  table.preface = {title_of(*prediction.job),
                   fmt::format("{}: {} a step; each number {} alone", to_text(prediction.layout.layout),
                               to_text(now), change)};
  table.columns = {{"key", "number"}, {"step_time", "step", true}, {"change", "change", true}};
  for (const Help& help : helps)
    table.rows.push_back(
        {text_cell(help.key), seconds_cell(help.step), signed_percent_cell(help.step / now - 1, 2)});
  add_assumptions(table, *prediction.job);
  return table;
}

std::span<const std::string_view> layout_result_columns() { return kResultColumns; }

std::vector<std::string> layout_results(const JobPrediction& prediction) {
  const LayoutPrediction& p = prediction.layout;
  std::vector<std::string> values;
  const auto add = [&](double value) { values.push_back(fmt::format("{:.6g}", value)); };
  add(p.step.si());
  add(p.tokens_per_second);
  add(p.mfu);
  for (const NamedPart& part : kParts) add((p.parts.*part.time).si());
  for (const auto member : {&RankMemory::allocated, &RankMemory::reserved, &RankMemory::device}) {
    add((p.first.*member).si());
    add((p.last.*member).si());
  }
  add(prediction.tokens_interval().low);
  add(prediction.tokens_interval().high);
  add((prediction.job->usable() - p.most.device).si());
  return values;
}

}  // namespace tbdsim
