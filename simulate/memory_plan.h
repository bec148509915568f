// GPU memory of a training iteration by the five categories of the TBD paper (section III-D), at the moment
// when the tensors alive need most. Frameworks keep scratch memory once asked for, so the largest workspace
// adds to that.
#pragma once

#include <cstdint>

#include "graphs/training_step.h"
#include "hwspecs/base/quantity.h"
#include "simulate/framework.h"

namespace tbdsim {

struct MemoryPlan {
  Bytes weights;  // parameters and moving statistics, with low-precision copies
  Bytes weight_gradients;
  Bytes feature_maps;   // tensors kept for the backward pass and gradient maps, as the paper counts them
  Bytes workspace;      // the largest scratch memory of any kernel within the framework's limit
  Bytes dynamic;        // optimizer state and the framework's further copies of the parameters
  Bytes context;        // CUDA context and libraries
  int peak_kernel = 0;  // index of the kernel at which the tensors alive need most

  [[nodiscard]] Bytes model() const {
    return weights + weight_gradients + feature_maps + workspace + dynamic;
  }
  [[nodiscard]] Bytes total() const { return model() + context; }
};

[[nodiscard]] MemoryPlan plan_memory(const TrainingStep& step, double batch, const Framework& framework);

// The largest batch whose total is within `capacity`; 0 when not even one sample fits, `most` at the most.
[[nodiscard]] std::int64_t largest_batch(const TrainingStep& step, const Framework& framework, Bytes capacity,
                                         std::int64_t most);

}  // namespace tbdsim
