// Kernels of batch norms that take their statistics over all ranks: PyTorch's own, where one GPU alone runs
// its library's or, in bf16, PyTorch's own with all gradients of NCHW in one kernel.
#pragma once

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Seconds by which an iteration's batch norms take longer than on one GPU alone; 0 where they are not synced.
[[nodiscard]] Seconds synced_norm_kernels(const Prediction& prediction, const Iteration& iteration);

}  // namespace tbdsim
