#include "simulate/report/target_tables.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/metrics.h"
#include "simulate/report/cells.h"

namespace tbdsim {
namespace {

constexpr Seconds kMinute(60), kHour(3600), kDay(86400);
constexpr std::size_t kNoteWidth = 100;

const std::vector<Column> kColumns = {{"model", ""},
                                      {"framework", ""},
                                      {"gpu", ""},
                                      {"precision", ""},
                                      {"target", ""},
                                      {"machines", "mach.", true},
                                      {"gpus", "GPUs", true},
                                      {"network", "network"},
                                      {"network_assumed", ""},
                                      {"batch", "batch", true},
                                      {"global_batch", "of all", true},
                                      {"throughput", "throughput", true},
                                      {"epochs", "epochs", true},
                                      {"epochs_from", ""},
                                      {"samples", ""},
                                      {"startup", ""},
                                      {"training", ""},
                                      {"evaluation", ""},
                                      {"checkpoints", ""},
                                      {"time_to_target", "time", true},
                                      {"time_low", ""},
                                      {"time_high", ""},
                                      {"hardware_factor", "rate", true},
                                      {"epochs_factor", "luck", true},
                                      {"cost_to_target", "USD", true},
                                      {"energy_board", "kWh board", true},
                                      {"energy_to_target", "wall", true},
                                      {"exchange_share", ""},
                                      {"memory", "GiB", true}};

constexpr const char* kLegend =
    "batch: samples in an iteration on each GPU, of all: on all; epochs: to the target, * beyond measured "
    "batches; time: until then, with start-up, evaluation and checkpoints; rate, luck: 80 % of runs are "
    "expected so near, in %, as far as the rate of the hardware is unknown, and as epochs differ from run to "
    "run, by who tuned it, and from their law; USD: rent of the GPUs; kWh: energy of the boards, and at the "
    "wall with hosts "
    "and cooling, estimates both (docs/model/time_to_accuracy.md); GiB: memory of one GPU.";

// "+-%": by which a factor widens an interval.
Cell factor_cell(double factor) {
  return number_cell(factor, fmt::format("{:.0f}", kPercent * (factor - 1)));
}

Cell seconds_cell(Seconds time) { return number_cell(time.si(), duration_text(time)); }

Cell energy_cell(Joules energy) { return number_cell(energy.si(), three_digits(in_unit(energy, "kWh"))); }

std::vector<Cell> row_of(const TargetRun& run) {
  const Prediction& p = run.prediction;
  const TimeToTarget& t = run.time;
  const Cluster& cluster = p.scenario.cluster;
  const bool outside = is_outside(t.epochs.from);
  const std::string network = run.assumed_network.empty() ? cluster.network : run.assumed_network + "*";
  const Bytes memory = p.memory.total();
  return {text_cell(p.model->name),
          text_cell(p.framework->name),
          text_cell(p.gpu->name),
          text_cell(p.scenario.precision),
          text_cell(p.convergence->target),
          count_cell(cluster.machines),
          count_cell(cluster.gpus),
          Cell{network, run.assumed_network.empty() ? cluster.network : run.assumed_network},
          flag_cell(!run.assumed_network.empty()),
          count_cell(static_cast<double>(p.scenario.batch)),
          count_cell(t.global_batch),
          number_cell(p.throughput(), three_digits(p.throughput()) + " " + throughput_unit(*p.model)),
          number_cell(t.epochs.epochs, three_digits(t.epochs.epochs) + (outside ? "*" : "")),
          text_cell(name_of(t.epochs.from)),
          number_cell(t.samples, three_digits(t.samples)),
          seconds_cell(t.startup),
          seconds_cell(t.training),
          seconds_cell(t.evaluation),
          seconds_cell(t.checkpointing),
          seconds_cell(t.total()),
          seconds_cell(t.total() / t.factor()),
          seconds_cell(t.total() * t.factor()),
          factor_cell(t.hardware_factor()),
          factor_cell(t.epochs_factor()),
          t.cost ? number_cell(t.cost->si(), three_digits(t.cost->si())) : none_cell(),
          energy_cell(t.energy.board),
          energy_cell(t.energy.wall),
          bare_percent_cell(p.exposed_time() / p.iteration_time(), 0),
          number_cell(memory.si(), fmt::format("{:.1f}{}", in_unit(memory, "GiB"), p.fits ? "" : "!"))};
}

std::string cluster_text(const TargetRun& run) {
  const Cluster& cluster = run.prediction.scenario.cluster;
  return cluster.machines == 1 ? fmt::format("{} GPUs", cluster.gpus)
                               : fmt::format("{} x {} GPUs", cluster.machines, cluster.gpus);
}

std::string parts_text(const TimeToTarget& t) {
  return fmt::format("start-up {}, training {}, evaluations {} ({:.0f}), checkpoints {} ({:.0f})",
                     duration_text(t.startup), duration_text(t.training), duration_text(t.evaluation),
                     t.evaluations, duration_text(t.checkpointing), t.checkpoints);
}

bool ascends(std::span<const TargetRun> runs) {
  return std::adjacent_find(runs.begin(), runs.end(), [](const TargetRun& a, const TargetRun& b) {
           return b.prediction.ranks() <= a.prediction.ranks();
         }) == runs.end();
}

std::vector<std::string> remarks(std::span<const TargetRun> runs) {
  std::vector<std::string> texts;
  const Convergence& to = *runs.front().prediction.convergence;
  const auto any = [&](auto holds) { return std::any_of(runs.begin(), runs.end(), holds); };
  if (any([](const TargetRun& r) { return r.time.epochs.from == EpochsFrom::given; }))
    texts.emplace_back("epochs are those that were given, taken to be right and the same at every batch.");
  if (any([](const TargetRun& r) { return is_outside(r.time.epochs.from); }))
    texts.push_back(
        fmt::format("*: epochs were measured at batches from {:.6g} to {:.6g}; outside of them the "
                    "law is carried on, and its interval widens.",
                    to.points.front().batch, to.largest_batch()));
  if (any([](const TargetRun& r) { return !r.assumed_network.empty(); }))
    texts.emplace_back("network*: assumed, as none is given.");
  if (any([](const TargetRun& r) { return !r.time.cost; }))
    texts.push_back("no rent is known of " + runs.front().prediction.gpu->title + ", and so no cost.");
  if (any([](const TargetRun& r) { return r.time.total() > kYear; })) texts.emplace_back(kBeyondYear);
  if (any([](const TargetRun& r) { return !r.prediction.fits; }))
    texts.emplace_back("!: does not fit into the memory of the GPU; its time is hypothetical.");
  return texts;
}

}  // namespace

std::string paying_text(std::span<const TargetRun> runs) {
  const auto last = last_that_pays(runs);
  if (!last) return "more GPUs pay as far as these go.";
  return fmt::format("more GPUs stop paying at {}: the next step gains less than half of what it could.",
                     cluster_text(runs[*last]));
}

std::string duration_text(Seconds time, int digits) {
  constexpr double kFew = 1.5;  // of the larger unit
  const auto in = [&](Seconds unit, const char* name) {
    return fmt::format("{:.{}g} {}", time / unit, digits, name);
  };
  if (time < kMinute * kFew) return in(Seconds(1), "s");
  if (time < kHour * kFew) return in(kMinute, "min");
  if (time < kDay * kFew) return in(kHour, "h");
  return time < kYear ? in(kDay, "days") : in(kYear, "years");
}

Table target_table(std::span<const TargetRun> runs) {
  Table table;
  table.name = "runs";
  table.columns = kColumns;
  for (const TargetRun& run : runs) table.rows.push_back(row_of(run));
  if (runs.empty()) return table;
  const Prediction& first = runs.front().prediction;
  table.preface =
      wrapped(fmt::format("{}, {}; {} on {}, {}", first.convergence->title, first.convergence->optimizer,
                          first.framework->title, first.gpu->title, first.scenario.precision),
              kScreenWidth);
  table.preface.emplace_back();
  const auto note = [&](const std::string& text) {
    for (const std::string& line : wrapped(text, kNoteWidth)) table.notes.push_back(line);
  };
  note(kLegend);
  for (const std::string& text : remarks(runs)) note(text);
  if (runs.size() == 1) note(parts_text(runs.front().time));
  if (runs.size() > 1 && ascends(runs)) note(paying_text(runs));
  return table;
}

}  // namespace tbdsim
