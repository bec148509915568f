// Storages of a captured step as tensors of a training step, with the kernels between which they live.
#pragma once

#include <vector>

#include "graphs/captured/captured_step.h"
#include "graphs/training_step.h"

namespace tbdsim {

// Kernels of an operator: last < first where it has none.
struct OperatorSpan {
  int first = 0;
  int last = -1;
};

// `module_of_storage`: parameters.h. `spans`: of each operator. `added`: by storage, whether it is a gradient
// that is added to one kept throughout. What the optimizer makes for itself becomes scratch memory of the
// kernels while it lives.
[[nodiscard]] std::vector<Tensor> tensors_of(const CapturedStep& step,
                                             const std::vector<int>& module_of_storage,
                                             const std::vector<OperatorSpan>& spans,
                                             const std::vector<bool>& added, std::vector<Kernel>& kernels);

}  // namespace tbdsim
