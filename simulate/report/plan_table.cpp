#include "simulate/report/plan_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"

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
                                                  {"collectives within blocks", &StepParts::tensor},
                                                  {"sends between stages", &StepParts::sends},
                                                  {"bubble", &StepParts::bubble},
                                                  {"exchange between replicas", &StepParts::replicas},
                                                  {"update", &StepParts::update},
                                                  {"once a step", &StepParts::other}});

constexpr auto kResultColumns = std::to_array<std::string_view>(
    {"step_time", "tokens_per_second", "mfu", "compute_time", "recompute_time", "launch_time", "tensor_time",
     "send_time", "bubble_time", "replica_time", "update_time", "other_time", "allocated_first",
     "allocated_last", "reserved_first", "reserved_last", "device_first", "device_last"});

Cell seconds_cell(Seconds time) { return number_cell(time.si(), to_text(time)); }
Cell gib_cell(Bytes bytes) { return number_cell(bytes.si(), fmt::format("{:.1f}", in_unit(bytes, "GiB"))); }
Cell share_cell(Seconds part, const LayoutPrediction& p) { return bare_percent_cell(part / p.step, 1); }

const std::vector<Column> kColumns = {
    {"list", ""},  // best or front
    {"layout", "layout"},
    {"step_time", "step", true},
    {"tokens_per_second", "tokens/s", true},
    {"mfu", "MFU", true},
    {"exposed_share", "comm.", true},
    {"bubble_share", "bubble", true},
    {"recompute_share", "again", true},
    {"memory", "GiB", true},
    {"headroom", "free", true},
    {"cost_per_token", "USD/Gtoken", true},
};

// Rent of all GPUs for a token; no value where the GPU has no price.
Cell cost_cell(const LayoutPrediction& p, const PlanInputs& inputs) {
  const auto& price = inputs.calibration->gpu->price_per_hour;
  if (!price) return none_cell();
  const double each = price->si() * static_cast<double>(inputs.job.gpus) / p.tokens_per_second;
  return number_cell(each, fmt::format("{:.0f}", each * kGiga));
}

std::vector<Cell> row_of(std::string_view list, const LayoutPrediction& p, const PlanInputs& inputs,
                         Bytes usable) {
  return {text_cell(list),
          text_cell(to_text(p.layout)),
          seconds_cell(p.step),
          count_cell(std::round(p.tokens_per_second)),
          bare_percent_cell(p.mfu, 1),
          share_cell(p.exposed(), p),
          share_cell(p.parts.bubble, p),
          share_cell(p.parts.again, p),
          gib_cell(p.most.device),
          gib_cell(usable - p.most.device),
          cost_cell(p, inputs)};
}

// "compute 1.2 s less, bubble 0.1 s more": the parts by which two layouts differ most.
std::string difference(const LayoutPrediction& a, const LayoutPrediction& b) {
  std::vector<std::pair<double, std::string_view>> parts;
  for (const NamedPart& part : kParts)
    parts.emplace_back((b.parts.*part.time - a.parts.*part.time).si(), part.name);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& x, const auto& y) { return std::abs(x.first) > std::abs(y.first); });
  std::string text;
  for (std::size_t i = 0; i < 3 && std::abs(parts[i].first) > kMicro; ++i) {
    text += fmt::format("{}{} {} {}", i > 0 ? ", " : "", parts[i].second,
                        to_text(Seconds(std::abs(parts[i].first))), parts[i].first > 0 ? "less" : "more");
  }
  return text.empty() ? "the same time with less memory" : text;
}

void add_lines(std::vector<std::string>& notes, const std::string& text) {
  for (std::string& line : wrapped(text, kNoteWidth)) notes.push_back(std::move(line));
}

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

}  // namespace

std::vector<Table> plan_tables(const Plan& plan, const PlanInputs& inputs, const std::string& title,
                               Bytes usable) {
  Table best;
  best.name = "layouts";
  best.preface = {title, fmt::format("{} legal layouts, {} fit", plan.searched, plan.fitting)};
  best.columns = kColumns;
  for (const LayoutPrediction& p : plan.best) best.rows.push_back(row_of("best", p, inputs, usable));
  if (plan.best.empty() && !plan.smallest.empty()) {
    best.rows.push_back(row_of("smallest", plan.smallest[0], inputs, usable));
    add_lines(best.notes,
              "No layout fits; this one lacks least. More GPUs, a higher ZeRO stage, a smaller "
              "micro-batch or more recomputation would make one fit.");
  }
  add_lines(
      best.notes,
      "comm.: exposed collectives and sends; bubble: stages wait for one another; again: recomputation; "
      "each in % of the step. GiB: memory of the fullest GPU as nvidia-smi shows it; free: what it has more. "
      "USD/Gtoken: rent of all GPUs for 10^9 tokens, on demand.");
  if (plan.best.size() > 1)
    add_lines(best.notes, fmt::format("The first beats the second by {}: {}.",
                                      to_text(plan.best[1].step - plan.best[0].step),
                                      difference(plan.best[0], plan.best[1])));
  std::vector<Table> tables{std::move(best)};
  if (plan.pareto.size() > 1) {
    Table front;
    front.name = "layouts";
    front.preface = {"", "Less memory costs time: no other layout is as fast with as little"};
    front.columns = kColumns;
    for (const LayoutPrediction& p : plan.pareto) front.rows.push_back(row_of("front", p, inputs, usable));
    tables.push_back(std::move(front));
  }
  return tables;
}

Table layout_table(const LayoutPrediction& p, const PlanInputs& inputs, const std::string& title,
                   Bytes usable) {
  Table table;
  table.name = "parts";
  table.preface = {
      title, fmt::format("{}, {} micro-batches", to_text(p.layout), micro_batches(p.layout, inputs.job)),
      fmt::format("{} a step, {:.0f} tokens/s, {:.0f} tokens/s a GPU, MFU {:.1f} %", to_text(p.step),
                  p.tokens_per_second, p.tokens_per_second / static_cast<double>(inputs.job.gpus),
                  kPercent * p.mfu)};
  table.columns = {{"part", "part"}, {"value", "amount", true}, {"share", "%", true}};
  for (const NamedPart& part : kParts)
    table.rows.push_back(
        {text_cell(part.name), seconds_cell(p.parts.*part.time), share_cell(p.parts.*part.time, p)});
  add_memory(table, p.first, p.layout.pp > 1 ? "first stage" : "each rank");
  if (p.layout.pp > 1) add_memory(table, p.last, "last stage");
  const Bytes most = p.most.device;
  add_lines(table.notes,
            most <= usable
                ? fmt::format("{} of {} are free.", to_text(usable - most), to_text(usable))
                : fmt::format("{} are lacking: a GPU has {}.", to_text(most - usable), to_text(usable)));
  return table;
}

std::span<const std::string_view> layout_result_columns() { return kResultColumns; }

std::vector<std::string> layout_results(const LayoutPrediction& p) {
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
  return values;
}

}  // namespace tbdsim
