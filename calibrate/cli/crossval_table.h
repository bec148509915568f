// Outcomes of cross-validation as a table.
#pragma once

#include <vector>

#include "calibrate/fit/cross_validation.h"
#include "hwspecs/base/table.h"

namespace tbdsim {

// A row for each family, data set, precision and protocol: means over GPUs of the geometric errors of
// formula, formula with residuals, constant share and roofline; median, 90th percentile and bias of the
// formula with residuals, how many lay within the 80 % interval. With `details` further rows for each phase
// and each GPU.
[[nodiscard]] Table cross_validation_table(const std::vector<Outcome>& outcomes, bool details);

}  // namespace tbdsim
