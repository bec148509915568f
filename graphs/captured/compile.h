// A captured step as torch.compile runs it: TorchInductor generates kernels for element-wise operators and
// reductions, each for as many of them as share their loops; convolutions, matrix products and attention
// remain calls of libraries. docs/capture.md says what is modelled and what is not.
#pragma once

#include "graphs/captured/captured_step.h"

namespace tbdsim {

// The step with generated kernels in the place of the operators that they compute, in an order in which they
// can run: operators `tbdsim.fused_pointwise` and `tbdsim.fused_reduction` with arguments (tensors read,
// elements, operations). Tensors that never leave a kernel have no bytes. Images of networks for which
// Inductor's layout optimization decides so are channels last.
[[nodiscard]] CapturedStep compiled(const CapturedStep& step);

}  // namespace tbdsim
