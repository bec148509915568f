// The distinct kernels among predictions: what to calibrate, and what a change of one would buy.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

struct UniqueKernel {
  Kernel kernel;               // one of them
  double batch = 1;            // at which its sizes are meant
  std::string shape;           // shape_text() at that batch
  std::string_view precision;  // of its operands: fp32, tf32, fp16, bf16
  double count = 0;            // executions over one iteration of every prediction
  Seconds total;               // predicted time of all of them: frameworks may choose different algorithms
  Bound bound = Bound::overhead;

  [[nodiscard]] Seconds each() const { return total * (1 / count); }
};

// Kernels of one operation, phase, precision, shape and traffic are one; the most time first.
[[nodiscard]] std::vector<UniqueKernel> unique_kernels(std::span<const Prediction> predictions);

}  // namespace tbdsim
