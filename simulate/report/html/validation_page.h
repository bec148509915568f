// The page of `tbd-sim validate --html`: predictions against measured runs.
#pragma once

#include <span>
#include <string>

#include "simulate/report/html/page.h"
#include "simulate/validation/farthest_runs.h"
#include "simulate/validation/validate_runs.h"

namespace tbdsim {

// Sections: validation_table() with the same `by` and `profile` (null: each GPU's own), predicted over
// measured by GPU, model and framework, the distribution of errors, the kernels of the `farthest` runs, and
// every configuration.
[[nodiscard]] Page validation_page(const Validation& validation, const std::string& by,
                                   const Profile* profile, std::span<const FarthestRun> farthest);

}  // namespace tbdsim
