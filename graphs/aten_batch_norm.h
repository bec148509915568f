// Kernels of PyTorch's own batch norms (aten/native/cuda/Normalization.cuh), which it runs in bf16: it asks
// cuDNN for no norm of that type (aten/native/Normalization.cpp).
//
//   NCHW   statistics, a thread block a channel; the result, a block for pixels of a channel; gradients in one kernel
//   NHWC   statistics and the result; sums of gradients and gradients of the input, a kernel each
//
// Running means and variances are a kernel of their own. SyncBatchNorm runs the first form in every
// precision, its sums and gradients of the input apart (torch/nn/modules/_functions.py: batch_norm_stats,
// batch_norm_elemt, batch_norm_backward_reduce, batch_norm_backward_elemt).
#pragma once

#include <vector>

#include "graphs/kernel.h"

namespace tbdsim {

struct AtenBatchNorm {
  ImageShape images;
  Size elements;
  std::int64_t element_bytes = 2;
  bool channels_last = false;
};

// True for kernels of functions below that are batch norms by kind; false for a library's.
[[nodiscard]] inline bool is_aten_norm(const Kernel& kernel) {
  return kernel.kind == KernelKind::batch_norm && kernel.access == Access::elements;
}
[[nodiscard]] std::vector<Kernel> forward_kernels(const AtenBatchNorm& norm);
// `by_input`: the gradient of the input is needed, beside those of the weights.
[[nodiscard]] std::vector<Kernel> backward_kernels(const AtenBatchNorm& norm, bool by_input);
// The kernels of the gradients that SyncBatchNorm runs, with the same argument.
[[nodiscard]] std::vector<Kernel> synced_backward_kernels(const AtenBatchNorm& norm, bool by_input);

}  // namespace tbdsim
