// GPU memory of a training iteration by the five categories of the TBD paper (section III-D), at the moment
// when the tensors alive need most. Frameworks keep scratch memory once asked for, so the largest workspace
// adds to that.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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

// What a step's memory is at any batch, found once: the kernels at which most can be alive, and the scratch
// memory that kernels ask for.
struct MemoryOutline {
  // Of a batch b: fixed + per_sample b.
  struct Line {
    double fixed = 0;
    double per_sample = 0;
    [[nodiscard]] double at(double batch) const { return fixed + per_sample * batch; }
  };
  enum Category : std::size_t { weights, weight_gradients, feature_maps, dynamic };
  struct Peak {
    int kernel = 0;
    Line all;
    std::array<Line, 4> alive;  // by category
  };
  struct Scratch {
    Size needed;    // temporary tensors
    Size optional;  // dropped where it is beyond the framework's limit
  };
  std::vector<Peak> peaks;       // no other kernel has as much at any batch
  std::vector<Scratch> scratch;  // distinct
};

[[nodiscard]] MemoryOutline memory_outline(const TrainingStep& step);

[[nodiscard]] MemoryPlan plan_memory(const MemoryOutline& outline, double batch, const Framework& framework);
[[nodiscard]] inline MemoryPlan plan_memory(const TrainingStep& step, double batch,
                                            const Framework& framework) {
  return plan_memory(memory_outline(step), batch, framework);
}

// The largest batch whose total is within `capacity`; 0 when not even one sample fits, `most` at the most.
[[nodiscard]] std::int64_t largest_batch(const MemoryOutline& outline, const Framework& framework,
                                         Bytes capacity, std::int64_t most);
[[nodiscard]] inline std::int64_t largest_batch(const TrainingStep& step, const Framework& framework,
                                                Bytes capacity, std::int64_t most) {
  return largest_batch(memory_outline(step), framework, capacity, most);
}

}  // namespace tbdsim
