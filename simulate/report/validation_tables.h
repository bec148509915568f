// How far off predictions are, as tables: `tbd-sim validate`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hwspecs/base/table.h"
#include "simulate/validation/holdout_gpu.h"
#include "simulate/validation/validate_runs.h"

namespace tbdsim {

// For people: a line a group, then for each section the mean over its groups, then why rows are not covered.
[[nodiscard]] Table validation_table(const Validation& validation, const std::string& by,
                                     const Profile* profile);

// The configurations of score with the largest errors, the worst first, with what was measured and predicted.
[[nodiscard]] Table worst_table(const Validation& validation, std::size_t most);

// Errors with all that was measured on each GPU, beside those with less: a row a group.
[[nodiscard]] Table holdout_table(const std::vector<HoldoutErrors>& errors, const std::string& by);

}  // namespace tbdsim
