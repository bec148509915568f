// Fusion of batch norms with the sum and ReLU behind them into one kernel forward and one backward, those of
// cuDNN's cudnnBatchNormalizationForwardTrainingEx and cudnnBatchNormalizationBackwardEx
// (CUDNN_BATCHNORM_OPS_BN_ACTIVATION, CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION); and of norms by constant
// statistics, scale and shift with the sum and ReLU behind them, as a compiler fuses them.
//
//   forward    batch norm, sum of two, ReLU: the intermediate results are not written
//              to memory; a bit mask of the positive numbers is kept
//   backward   ReLU, batch norm: the gradient between them is not written to memory
//              unless the other summand needs it; the mask is read by both passes
//
// TensorFlow fuses the forward pass only (_FusedBatchNormEx, core/grappler/optimizers/remapper.cc): its
// ReLU's gradient is a kernel of its own, by the ReLU's output.
//
// By convolutions in half precision (cudnnFusedOps_t: CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS and
// CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD), the forward kernel goes but for the sum of two:
//
//   before     the convolution adds up the statistics of what it writes, so that the norm reads it once
//   behind     a convolution that alone reads norm and ReLU applies them to what it reads, and its gradient
//              by the weights does again: their map is never written
#pragma once

#include "graphs/training_step.h"

namespace tbdsim {

enum class FusedNorms { both_passes, forward_pass, with_convolutions };

// The step with all such norms fused. A norm is not fused where another kernel reads its output, or where
// other kernels run between it and its ReLU in either pass.
[[nodiscard]] TrainingStep with_fused_norms(const TrainingStep& step,
                                            FusedNorms how = FusedNorms::both_passes);

}  // namespace tbdsim
