// Tables of a measured run, alone and beside its prediction.
#pragma once

#include <string>
#include <vector>

#include "hwspecs/base/table.h"
#include "simulate/compare/compare_run.h"

namespace tbdsim {

// One row a kernel's name and part of the step, the most time first.
[[nodiscard]] Table measured_kernel_table(const MeasuredRun& run);

struct ScaledOn {
  std::string gpu;
  ScaledStep step;
};

// One row a kind of kernels, the largest difference first; below, totals of a step. `elsewhere`: none or one.
[[nodiscard]] Table comparison_table(const Prediction& prediction, const MeasuredRun& run,
                                     const Comparison& comparison, const std::vector<ScaledOn>& elsewhere);

}  // namespace tbdsim
