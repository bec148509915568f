// A what-if as tables: metrics before and after, the iteration by kinds of kernels, bounds, sensitivities.
#pragma once

#include <span>

#include "hwspecs/base/sheet.h"
#include "simulate/whatif.h"

namespace tbdsim {

[[nodiscard]] Sheet before_and_after_sheet(const Prediction& before, const Prediction& after,
                                           const SpecChanges& changes);
[[nodiscard]] Sheet time_parts_sheet(const Prediction& before, const Prediction& after);
[[nodiscard]] Sheet limitless_sheet(const Prediction& prediction, std::span<const Limitless> bounds);
[[nodiscard]] Sheet sensitivity_sheet(const Prediction& prediction, std::span<const Sensitivity> all);

}  // namespace tbdsim
