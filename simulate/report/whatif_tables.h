// A what-if as tables: metrics before and after, the iteration by kinds of kernels, bounds, sensitivities.
#pragma once

#include <span>

#include "hwspecs/base/table.h"
#include "simulate/analysis/sensitivity.h"
#include "simulate/analysis/whatif.h"

namespace tbdsim {

[[nodiscard]] Table before_and_after_table(const Prediction& before, const Prediction& after,
                                           const SpecChanges& changes);
[[nodiscard]] Table time_parts_table(const Prediction& before, const Prediction& after);
[[nodiscard]] Table upper_bounds_table(const Prediction& prediction, std::span<const UpperBound> bounds);
[[nodiscard]] Table sensitivity_table(const Prediction& prediction, std::span<const Sensitivity> all);

}  // namespace tbdsim
