#include "simulate/report/plan_target_table.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/energy.h"
#include "simulate/report/cells.h"
#include "simulate/report/target_tables.h"

namespace tbdsim {
namespace {

constexpr std::size_t kNoteWidth = 100;
// Time of a forward pass over that of a step without recomputation: a backward pass takes two of them.
constexpr double kForwardShare = 1.0 / 3;

struct LayoutTarget {
  double steps = 0;
  Seconds startup, training, evaluation;
  std::optional<Dollars> cost;
  Energy energy;

  [[nodiscard]] Seconds total() const { return startup + training + evaluation; }
};

Power at_share(double share, const PlanInputs& inputs) {
  const Watts limit = inputs.calibration->gpu->tdp * static_cast<double>(inputs.job.gpus);
  return {limit * share, (limit * share + limit * kHostShare) * kCoolingFactor};
}

// The mean power over a step. Parts of it are taken to be limited by arithmetic, by memory (the update), by
// links, or to wait.
Power step_power(const LayoutPrediction& p, const PlanInputs& inputs) {
  const PowerShares shares;
  const StepParts& parts = p.parts;
  const Seconds computing = parts.compute + parts.again;
  const Seconds waiting = p.step - computing - parts.update - p.exposed();
  const double mean = (computing * shares.compute + parts.update * shares.memory + p.exposed() * shares.sync +
                       waiting * shares.waiting) /
                      p.step;
  return at_share(mean, inputs);
}

LayoutTarget target_of(const LayoutPrediction& p, const PlanInputs& inputs, const Convergence& to,
                       const EpochsToTarget& epochs) {
  const auto batch = static_cast<double>(inputs.job.global_batch);
  LayoutTarget target;
  target.steps = std::ceil(epochs.epochs * to.epoch / batch);
  target.startup = to.startup;
  target.training = p.step * target.steps;
  const Seconds forward = (p.step - p.parts.again - p.parts.update) * kForwardShare;
  if (!to.evaluation.overlaps) {
    target.evaluation = (to.evaluation.overhead + forward * std::ceil(to.evaluation.samples / batch)) *
                        to.evaluation.within(epochs.epochs);
  }
  if (const auto& price = inputs.calibration->gpu->price_per_hour)
    target.cost = *price * static_cast<double>(inputs.job.gpus) * target.total();
  target.energy = step_power(p, inputs) * (target.training + target.evaluation) +
                  at_share(PowerShares{}.waiting, inputs) * target.startup;
  return target;
}

Cell seconds_cell(Seconds time) { return number_cell(time.si(), duration_text(time)); }

Cell energy_cell(Joules energy) { return number_cell(energy.si(), three_digits(in_unit(energy, "kWh"))); }

}  // namespace

Table plan_target_table(std::span<const LayoutPrediction> layouts, const PlanInputs& inputs,
                        const Convergence& to) {
  const auto batch = static_cast<double>(inputs.job.global_batch);
  if (batch > to.epoch) {
    throw UsageError(fmt::format(
        "--global-batch {:.0f} is more than the {:.0f} samples of an epoch; expected a smaller one", batch,
        to.epoch));
  }
  const EpochsToTarget epochs = epochs_to_target(to, batch);
  const double factor = std::exp(kEightyPercent * epochs.spread());
  Table table;
  table.name = "targets";
  table.preface = {"", to.title};
  table.columns = {{"layout", "layout"},
                   {"samples", "sequences", true},
                   {"epochs_from", ""},
                   {"steps", "steps", true},
                   {"startup", ""},
                   {"training", ""},
                   {"evaluation", ""},
                   {"time_to_target", "time", true},
                   {"time_low", "from", true},
                   {"time_high", "to", true},
                   {"cost_to_target", "USD", true},
                   {"energy_board", "kWh board", true},
                   {"energy_to_target", "wall", true}};
  for (const LayoutPrediction& p : layouts) {
    const LayoutTarget t = target_of(p, inputs, to, epochs);
    table.rows.push_back({text_cell(to_text(p.layout)), count_cell(std::round(epochs.epochs * to.epoch)),
                          text_cell(name_of(epochs.from)), count_cell(t.steps), seconds_cell(t.startup),
                          seconds_cell(t.training), seconds_cell(t.evaluation), seconds_cell(t.total()),
                          seconds_cell(t.total() / factor), seconds_cell(t.total() * factor),
                          t.cost ? number_cell(t.cost->si(), three_digits(t.cost->si())) : none_cell(),
                          energy_cell(t.energy.board), energy_cell(t.energy.wall)});
  }
  const auto note = [&](const std::string& text) {
    for (const std::string& line : wrapped(text, kNoteWidth)) table.notes.push_back(line);
  };
  note(
      "time: start-up, steps, and evaluations as forward passes; from, to: 80 % of runs are expected between "
      "them as far as their epochs differ, the rate of the hardware is taken to be known; energy: an "
      "estimate (docs/model/time_to_accuracy.md).");
  if (epochs.from != EpochsFrom::between)
    note(
        fmt::format("epochs were measured at batches from {:.6g} to {:.6g}; outside of them the law is "
                    "carried on, and its interval widens.",
                    to.points.front().batch, to.largest_batch()));
  if (!inputs.calibration->gpu->price_per_hour)
    note("no rent is known of " + inputs.calibration->gpu->title + ", and so no cost.");
  return table;
}

}  // namespace tbdsim
