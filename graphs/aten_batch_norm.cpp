#include "graphs/aten_batch_norm.h"

namespace tbdsim {
namespace {

// Operations on each element, as graphs/layers/batch_norm.cpp counts them: moments and normalised numbers
// forward; two sums and the gradient of the input backward.
constexpr std::int64_t kMoments = 3, kNormalise = 3, kSums = 5, kGradient = 4;
constexpr std::int64_t kFp32 = 4;  // bytes

Kernel kernel_of(KernelKind kind, Phase phase, std::string_view op, const Size& flops, const Size& read,
                 const Size& written) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.phase = phase;
  kernel.op = op;
  kernel.flops = flops;
  kernel.read_bytes = read;
  kernel.written_bytes = written;
  return kernel;
}

// A kernel that goes over the images `reads` times and writes them `writes` times.
Kernel over_images(const AtenBatchNorm& norm, KernelKind kind, Phase phase, std::int64_t flops,
                   std::int64_t reads, std::int64_t writes) {
  const Size bytes = norm.elements * norm.element_bytes;
  Kernel kernel = kernel_of(kind, phase, "batch_norm", norm.elements * flops, bytes * reads, bytes * writes);
  kernel.element_bytes = norm.element_bytes;
  kernel.shape = norm.images;
  return kernel;
}

// Mean and variance, their moving ones and the inverse deviation of each channel.
Kernel running_statistics(const AtenBatchNorm& norm) {
  const Size channels{norm.images.channels, 0};
  Kernel kernel = kernel_of(KernelKind::elementwise, Phase::forward, "running_statistics", channels * 4,
                            channels * (4 * kFp32), channels * (3 * kFp32));
  kernel.shape = VectorShape{channels};
  return kernel;
}

// A kernel whose threads each compute numbers of one channel of one image.
Kernel by_rows(const AtenBatchNorm& norm, Phase phase, std::int64_t flops, std::int64_t reads) {
  Kernel kernel = over_images(norm, KernelKind::batch_norm, phase, flops, reads, 1);
  kernel.access = Access::elements;
  kernel.shape =
      MatrixShape{norm.images.images * norm.images.channels, norm.images.height * norm.images.width};
  return kernel;
}

}  // namespace

std::vector<Kernel> forward_kernels(const AtenBatchNorm& norm) {
  Kernel moments = over_images(norm, KernelKind::batch_norm, Phase::forward, kMoments, 1, 0);
  moments.access = Access::elements;
  moments.channel_blocks = !norm.channels_last;
  Kernel result = norm.channels_last
                      ? over_images(norm, KernelKind::elementwise, Phase::forward, kNormalise, 1, 1)
                      : by_rows(norm, Phase::forward, kNormalise, 1);
  return {std::move(moments), running_statistics(norm), std::move(result)};
}

std::vector<Kernel> backward_kernels(const AtenBatchNorm& norm, bool by_input) {
  const Phase phase = by_input ? Phase::backward_data : Phase::backward_weights;
  if (!norm.channels_last) {
    Kernel kernel = by_input ? over_images(norm, KernelKind::batch_norm, phase, kSums + kGradient, 4, 1)
                             : over_images(norm, KernelKind::batch_norm, phase, kSums, 2, 0);
    kernel.access = Access::elements;
    kernel.channel_blocks = true;
    return {std::move(kernel)};
  }
  std::vector<Kernel> kernels{over_images(norm, KernelKind::batch_norm, phase, kSums, 2, 0)};
  kernels.front().access = Access::elements;
  if (by_input) kernels.push_back(over_images(norm, KernelKind::elementwise, phase, kGradient, 2, 1));
  return kernels;
}

std::vector<Kernel> synced_backward_kernels(const AtenBatchNorm& norm, bool by_input) {
  if (norm.channels_last) return backward_kernels(norm, by_input);
  std::vector<Kernel> kernels = backward_kernels(norm, false);
  if (by_input) kernels.push_back(by_rows(norm, Phase::backward_data, kGradient, 2));
  return kernels;
}

}  // namespace tbdsim
