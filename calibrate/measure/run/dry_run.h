// The plan of a run as text, without a device.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/plan/plan.h"
#include "calibrate/measure/run/options.h"

namespace tbdsim::measure {

// The plan the options name (a file, or the built-in one), restricted to --only and --precision, in measuring
// order.
[[nodiscard]] Plan plan_of(const Options& options);

// One line per point: number, guessed seconds, running total, where the time limit falls; skipped points at
// the end. Guessed for a TITAN Xp; a run corrects the guesses by what its first points take.
[[nodiscard]] std::string dry_run_text(const Plan& plan, double minutes);

}  // namespace tbdsim::measure
