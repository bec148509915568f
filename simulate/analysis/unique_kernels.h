// The distinct kernels among predictions, with their share of the time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

struct UniqueKernel {
  Kernel kernel;               // the first of them
  double batch = 1;            // samples, for the kernel's sizes
  std::string shape;           // shape_text() at that batch
  std::string_view precision;  // of the operands: fp32, tf32, fp16, bf16
  double count = 0;            // executions over one iteration of every prediction
  Seconds total;               // predicted time of all of them, whatever their algorithms
  Bound bound = Bound::overhead;
  bool channels_last = false;  // the framework's images are NHWC

  [[nodiscard]] Seconds each() const { return total * (1 / count); }
};

// Kernels with the same operation, phase, precision, shape and bytes are merged; the most time first.
[[nodiscard]] std::vector<UniqueKernel> unique_kernels(std::span<const Prediction> predictions);

}  // namespace tbdsim
