// Utilization of the pipes of a GPU's multiprocessors while kernels run, as Nsight Compute counts it: what a
// pipe executes over what it could, averaged over kernels by their time. The TBD suite's later page reports
// these.
#pragma once

#include <optional>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Ratios, 0 to 1.
struct PipeUse {
  double fma = 0;      // single precision: a multiply-add, an addition or a product is one instruction
  double fp16 = 0;     // packed half precision without tensor cores
  double tensor = 0;   // tensor cores, of all types
  double special = 0;  // reciprocals, roots, exponentials and logarithms
};

// Means over the iterations of a prediction; none where no kernel runs. Instructions that convert types or
// copy are not counted.
[[nodiscard]] std::optional<PipeUse> pipe_use(const Prediction& prediction);

// Reciprocals, roots, exponentials and logarithms of one launch: so many for each element, by the operation.
[[nodiscard]] double special_functions(const Kernel& kernel, double batch);

// Special functions that a multiprocessor of this compute capability starts in a clock.
[[nodiscard]] double special_lanes(double compute_capability);

}  // namespace tbdsim
