// Predictions against measured runs as a page: `tbd-sim validate --html`.
#pragma once

#include <string>

#include "simulate/report/html/page.h"
#include "simulate/validation/validate_runs.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// The table of validation_table() with the same `by` and `profile` (none: each GPU's own), predicted over
// measured by GPU, model and framework, how errors are distributed, every configuration, and of the ten that
// are farthest off in section score the kernels behind them.
[[nodiscard]] Page validation_page(const Validation& validation, const std::string& by,
                                   const Profile* profile, SpecCache& specs);

}  // namespace tbdsim
