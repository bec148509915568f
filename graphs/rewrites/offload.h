// Activations offloaded to the host between forward and backward pass (Rhu et al., "vDNN", MICRO 2016).
#pragma once

#include <vector>

#include "graphs/training_step.h"

namespace tbdsim {

// An activation on the host in between: copied there after kernel `last_forward`, back before kernel
// `first_again`.
struct OffloadedActivation {
  int last_forward = 0;
  int first_again = 0;
  Size bytes;  // of all batches of an iteration, which copies pass as kernels repeat
};

// The step without its activations on the GPU between the passes. The copies are no kernels: they overlap
// those of the step. Each activation is copied back while the one before it in the backward pass is in use.
[[nodiscard]] TrainingStep with_offloaded_activations(const TrainingStep& step);

// The activations that with_offloaded_activations() moves, in the order of the step's tensors.
[[nodiscard]] std::vector<OffloadedActivation> offloaded_activations(const TrainingStep& step);

}  // namespace tbdsim
