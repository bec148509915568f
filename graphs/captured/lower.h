// Kernels and tensors of a captured step: the TrainingStep that everything else works on.
#pragma once

#include "graphs/captured/captured_step.h"
#include "graphs/training_step.h"

namespace tbdsim {

// The step's operators as kernels, its storages as tensors with lifetimes, its modules as layers. The
// framework's lowering says what differs between PyTorch's versions: whether optimizers loop over their
// parameters, gradients are zeroed, attention and biases have kernels of their own, in which layout tensor
// cores convolve. Operators without a lowering are charged by their bytes and counted in the step's warnings.
// Throws ModelError, which names the operator.
[[nodiscard]] TrainingStep lower_captured_step(const CapturedStep& captured, const Lowering& lowering,
                                               const Precision& precision);

}  // namespace tbdsim
