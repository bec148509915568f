// Which kernels of a step update parameters, and from when on they can run.
#pragma once

#include <vector>

#include "graphs/training_step.h"

namespace tbdsim {

[[nodiscard]] inline bool updates_parameter(const Kernel& kernel) {
  return kernel.phase == Phase::update && kernel.layer >= 0 && kernel.kind != KernelKind::transfer;
}

// After the last kernel of the same layer before, and what goes over the gradients of all layers at once; in
// the order in which they are ready.
[[nodiscard]] std::vector<ParameterUpdate> parameter_updates(const TrainingStep& step);

}  // namespace tbdsim
