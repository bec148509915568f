#include "simulate/report/plan_target_table.h"

#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "simulate/job/job_prediction.h"
#include "simulate/job/layout_target.h"
#include "simulate/report/cells.h"
#include "simulate/report/target_tables.h"

namespace tbdsim {
namespace {

constexpr std::size_t kNoteWidth = 100;
Cell seconds_cell(Seconds time) { return number_cell(time.si(), duration_text(time)); }

Cell energy_cell(Joules energy) { return number_cell(energy.si(), three_digits(in_unit(energy, "kWh"))); }

}  // namespace

Table plan_target_table(std::span<const LayoutPrediction> layouts, const ResolvedJob& job,
                        const Convergence& to) {
  const PlanInputs& inputs = job.inputs;
  const auto batch = static_cast<double>(inputs.job.global_batch);
  if (batch > to.epoch) {
    throw UsageError(fmt::format(
        "--global-batch {:.0f} is more than the {:.0f} samples of an epoch; expected a smaller one", batch,
        to.epoch));
  }
  const EpochsToTarget epochs = epochs_to_target(to, batch);
  const double luck = kEightyPercent * epochs.spread();
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
                   {"hardware_factor", ""},
                   {"epochs_factor", ""},
                   {"cost_to_target", "USD", true},
                   {"energy_board", "kWh board", true},
                   {"energy_to_target", "wall", true}};
  bool beyond_a_year = false;
  for (const LayoutPrediction& p : layouts) {
    const LayoutTarget t = target_of_layout(p, inputs, to, epochs.epochs);
    const double rate = with_interval(p, job).factor();
    const double factor = std::exp(std::hypot(std::log(rate), luck));
    beyond_a_year = beyond_a_year || t.total() > kYear;
    table.rows.push_back({text_cell(to_text(p.layout)), count_cell(std::round(epochs.epochs * to.epoch)),
                          text_cell(name_of(epochs.from)), count_cell(t.steps), seconds_cell(t.startup),
                          seconds_cell(t.training), seconds_cell(t.evaluation), seconds_cell(t.total()),
                          seconds_cell(t.total() / factor), seconds_cell(t.total() * factor),
                          number_cell(rate, ""), number_cell(std::exp(luck), ""),
                          t.cost ? number_cell(t.cost->si(), three_digits(t.cost->si())) : none_cell(),
                          energy_cell(t.energy.board), energy_cell(t.energy.wall)});
  }
  const auto note = [&](const std::string& text) {
    for (const std::string& line : wrapped(text, kNoteWidth)) table.notes.push_back(line);
  };
  note(
      "time: start-up, steps, and evaluations as forward passes; from, to: 80 % of runs are expected between "
      "them, by the step's interval and as far as epochs differ; energy: an estimate "
      "(docs/model/time_to_accuracy.md).");
  if (is_outside(epochs.from))
    note(
        fmt::format("epochs were measured at batches from {:.6g} to {:.6g}; outside of them the law is "
                    "carried on, and its interval widens.",
                    to.points.front().batch, to.largest_batch()));
  if (epochs.from == EpochsFrom::given) note("epochs are those that were given, taken to be right.");
  if (beyond_a_year) note(kBeyondYear);
  if (!inputs.calibration->gpu->price_per_hour)
    note("no rent is known of " + inputs.calibration->gpu->title + ", and so no cost.");
  return table;
}

}  // namespace tbdsim
