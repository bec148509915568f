// Outcomes of cross-validation as a table.
#pragma once

#include <vector>

#include "calibrate/fit/cross_validation.h"
#include "hwspecs/base/table.h"

namespace tbdsim {

// A row for each family, data set, precision and protocol, with
//
//   the geometric error exp(mean |ln(predicted / measured)|) - 1, averaged over GPUs, of the formula with residuals,
//   the formula alone, a roofline and a constant share of the peak;
//   median, 90th percentile and bias of the formula with residuals, and the part of calls in its 80 % interval.
//
// `details` adds rows for each phase and each GPU.
[[nodiscard]] Table cross_validation_table(const std::vector<Outcome>& outcomes, bool details);

}  // namespace tbdsim
