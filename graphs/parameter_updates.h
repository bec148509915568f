// Kernels of a step that update parameters, each with the kernel after which it can run.
#pragma once

#include <vector>

#include "graphs/training_step.h"

namespace tbdsim {

// True for a kernel that updates the parameters of one layer.
[[nodiscard]] inline bool updates_parameter(const Kernel& kernel) {
  return kernel.phase == Phase::update && kernel.layer >= 0 && kernel.kind != KernelKind::transfer;
}

// The updates of a step in the order in which they can run: each after the last earlier kernel of its layer
// and after kernels over the gradients of all layers (clipping by their norm, for example).
[[nodiscard]] std::vector<ParameterUpdate> parameter_updates(const TrainingStep& step);

}  // namespace tbdsim
