// Batch norms with what stands behind them as one kernel each way, as cuDNN's
// cudnnBatchNormalizationForwardTrainingEx and cudnnBatchNormalizationBackwardEx have them
// (CUDNN_BATCHNORM_OPS_BN_ACTIVATION, CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION).
//
//   forward    batch norm, a sum of two, ReLU: what passes between them is not written
//              and read again; a bit of each number says whether it was above zero
//   backward   ReLU, batch norm: the gradient between them is not written and read
//              again, unless the other summand needs it; the bits are read in both passes
#pragma once

#include "graphs/training_step.h"

namespace tbdsim {

// A norm is left as it is where something else reads what it writes, or where other kernels stand between it
// and its ReLU in either direction.
[[nodiscard]] TrainingStep with_fused_norms(const TrainingStep& step);

}  // namespace tbdsim
