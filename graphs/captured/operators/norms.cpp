// Batch, layer, group and instance norms, which dispatch as a batch norm over samples x channels. Operations
// and passes over memory are those of graphs/layers/batch_norm.cpp, layer_norm.cpp and group_norm.cpp.
#include <algorithm>

#include "graphs/aten_batch_norm.h"
#include "graphs/captured/operators/operators.h"
#include "graphs/captured/tensor_access.h"
#include "graphs/group_moments.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kBatchForward = 6, kBatchBackward = 9, kBatchSums = 5, kScaleAndShift = 2;
constexpr std::int64_t kRmsForward = 4, kLayerForward = 8, kLayerMoments = 4, kLayerBackward = 10,
                       kLayerWeights = 5;
constexpr std::int64_t kMomentFlops = 3, kGroupGradient = 4;

// Channels are the second dimension; where they grow with the batch they are counted as images.
ImageShape image_of(const OperatorSite& site, const CapturedTensor& x) {
  if (x.shape.size() < 2) site.fail(0, "samples x channels");
  const bool growing = x.shape[1].per_sample != 0;
  ImageShape image{.images = growing ? x.shape[1] : x.shape[0],
                   .channels = growing ? site.fixed(x.shape[0]) : x.shape[1].fixed,
                   .height = 1,
                   .width = 1};
  for (std::size_t i = 2; i < x.shape.size(); ++i) {
    std::int64_t& side = i == 2 ? image.height : image.width;
    side = checked_multiply(side, site.fixed(x.shape[i]));
  }
  return image;
}

Kernel batch_norm(const OperatorSite& site, const CapturedTensor& x, Phase phase, std::int64_t flops,
                  std::int64_t reads, std::int64_t writes) {
  const Size bytes = bytes_of(x);
  Kernel kernel = bytes_kernel(KernelKind::batch_norm, phase, "batch_norm", x.elements, flops, bytes * reads,
                               bytes * writes, bytes_of(x.dtype));
  kernel.shape = image_of(site, x);
  // Rows of channels, as in graphs/layers/batch_norm.cpp.
  if (is_channels_last(x) && bytes_of(x.dtype) == 2) {
    kernel.timed_as = KernelKind::elementwise;
    kernel.access = Access::pixels;
  }
  kernel.channel_blocks = x.shape.size() > 2 && x.shape[1].per_sample == 0 && !is_channels_last(x);
  return kernel;
}

// True where PyTorch's own kernels compute the batch norm of x.
bool is_own(const OperatorSite& site, const CapturedTensor& x) {
  return site.how.lowering.aten_kernels && x.dtype == Dtype::bf16 && x.shape.size() > 2;
}

AtenBatchNorm own_norm(const OperatorSite& site, const CapturedTensor& x) {
  return {.images = image_of(site, x),
          .elements = x.elements,
          .element_bytes = bytes_of(x.dtype),
          .channels_last = is_channels_last(x)};
}

// Rows are normalised over `columns` numbers each.
Kernel row_norm(const CapturedTensor& x, std::int64_t columns, Phase phase, std::string_view op,
                std::int64_t flops, const Size& read, const Size& written) {
  Kernel kernel =
      bytes_kernel(KernelKind::layer_norm, phase, op, x.elements, flops, read, written, bytes_of(x.dtype));
  const std::int64_t count = std::max<std::int64_t>(1, columns);
  kernel.shape = MatrixShape{{x.elements.fixed / count, x.elements.per_sample / count}, count};
  return kernel;
}

// The copy that layer norms make of rows that do not lie one behind another
// (aten/native/cuda/layer_norm_kernel.cu, expect_contiguous).
void copy_unless_contiguous(OperatorSite& site, const CapturedTensor& x, Phase phase) {
  if (is_contiguous(x)) return;
  Kernel copy = bytes_kernel(KernelKind::transpose, phase, "copy", x.elements, 0, bytes_of(x),
                             x.elements * bytes_of(x.dtype), bytes_of(x.dtype));
  copy.access = access_of_contiguous_copy(x);
  site.emit(std::move(copy));
}

std::int64_t product_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) all = checked_multiply(all, size);
  return all;
}

// A group norm's numbers beside its tensors. `of_channels`, `of_groups`: arguments with their counts.
struct GroupNorm {
  OperatorSite& site;
  Dtype dtype;
  Size channels;    // of all samples
  Size factors;     // bytes of two numbers for each of them
  Size statistics;  // bytes of two numbers for each group

  GroupNorm(OperatorSite& at, const CapturedTensor& x, std::size_t of_channels, std::size_t of_groups)
      : site(at),
        dtype(x.dtype),
        channels(x.shape.empty() ? Size{} : x.shape[0] * at.whole(of_channels)),
        factors(channels * (2 * kFp32Bytes)),
        statistics(x.shape.empty() ? Size{}
                                   : x.shape[0] * checked_multiply(at.whole(of_groups), 2 * kFp32Bytes)) {}

  void add(KernelKind kind, std::string_view op, const Size& elements, std::int64_t flops, const Size& read,
           const Size& written, Access access = Access::vectors) const {
    Kernel kernel = bytes_kernel(kind, site.phase, op, elements, flops, read, written, bytes_of(dtype));
    kernel.access = access;
    site.emit(std::move(kernel));
  }
  // How the kernel of the result reaches its numbers: its factors of channels are smaller operands.
  [[nodiscard]] Access of_result() const {
    return site.how.lowering.aten_kernels ? Access::elements : Access::vectors;
  }
};

}  // namespace

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
void lower_batch_norm(OperatorSite& site) {
  const CapturedTensor& x = site.tensor(0);
  if (site.flag(5) && is_own(site, x)) {
    for (Kernel& kernel : forward_kernels(own_norm(site, x))) site.emit(std::move(kernel));
  } else if (site.flag(5)) {
    site.emit(batch_norm(site, x, site.phase, kBatchForward, 2, 1));
  } else {
    site.emit(bytes_kernel(KernelKind::elementwise, site.phase, "batch_norm", x.elements, kScaleAndShift,
                           bytes_of(x), bytes_of(site.output(0)), bytes_of(x.dtype)));
  }
}

// (grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)
void lower_batch_norm_backward(OperatorSite& site) {
  const CapturedTensor& x = site.tensor(1);
  const bool trains = site.flag(7);
  const bool by_input = site.flag_of_list(9, 0);
  if (trains && is_own(site, x)) {
    for (Kernel& kernel : backward_kernels(own_norm(site, x), by_input)) site.emit(std::move(kernel));
  } else if (by_input && trains) {
    site.emit(batch_norm(site, x, Phase::backward_data, kBatchBackward, 4, 1));
  } else if (by_input) {
    site.emit(batch_norm(site, x, Phase::backward_data, kBatchSums, 2, 1));
  } else {
    site.emit(batch_norm(site, x, Phase::backward_weights, kBatchSums, 2, 0));
  }
}

// (input, normalized_shape, weight, bias, eps); of an RMS norm without bias
void lower_layer_norm(OperatorSite& site) {
  const CapturedTensor& x = site.tensor(0);
  const std::int64_t columns = product_of(site.wholes(1));
  const Size written = bytes_of(site.output(0));
  copy_unless_contiguous(site, x, site.phase);
  if (site.how.lowering.moments_apart) {
    site.emit(row_norm(x, columns, site.phase, "layer_norm", kLayerMoments, bytes_of(x), {}));
    site.emit(
        row_norm(x, columns, site.phase, "layer_norm", kLayerForward - kLayerMoments, bytes_of(x), written));
    return;
  }
  const bool rms = name_in_table(site.op.name) == "_fused_rms_norm";
  site.emit(row_norm(x, columns, site.phase, "layer_norm", rms ? kRmsForward : kLayerForward, bytes_of(x),
                     written));
}

// (grad, input, normalized_shape, mean, rstd, weight, bias, output_mask); of an RMS norm without mean and
// bias
void lower_layer_norm_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const CapturedTensor& x = site.tensor(1);
  const std::int64_t columns = product_of(site.wholes(2));
  const Size read = bytes_of(dy) + bytes_of(x);
  const std::size_t mask = site.op.arguments.size() - 1;
  const bool rms = mask == 5;
  for (const CapturedTensor* tensor : {&dy, &x}) copy_unless_contiguous(site, *tensor, Phase::backward_data);
  if (site.flag_of_list(mask, 0))
    site.emit(row_norm(x, columns, Phase::backward_data, "layer_norm", kLayerBackward, read, bytes_of(x)));
  if (site.flag_of_list(mask, 1) || (!rms && site.flag_of_list(mask, 2)))
    site.emit(row_norm(x, columns, Phase::backward_weights, "layer_norm", kLayerWeights, read, {}));
}

// (input, weight, bias, N, C, HxW, group, eps): a kernel for the moments, one for the result, and a small one
// over channels (aten/src/ATen/native/cuda/group_norm_kernel.cu), as graphs/layers/group_norm.cpp has them.
void lower_group_norm(OperatorSite& site) {
  const CapturedTensor& x = site.tensor(0);
  const GroupNorm norm(site, x, 4, 6);
  Kernel moments = bytes_kernel(KernelKind::reduction, site.phase, "group_moments", x.elements, kMomentFlops,
                                bytes_of(x), norm.statistics, bytes_of(x.dtype));
  as_moments_of_groups(
      moments, checked_multiply(site.whole(4), site.whole(5)) / std::max<std::int64_t>(1, site.whole(6)));
  site.emit(std::move(moments));
  norm.add(KernelKind::elementwise, "group_factors", norm.channels, 2, norm.statistics, norm.factors);
  norm.add(KernelKind::elementwise, "group_norm", x.elements, kScaleAndShift, bytes_of(x) + norm.factors,
           bytes_of(site.output(0)), norm.of_result());
}

// (grad, input, mean, rstd, weight, N, C, HxW, group, output_mask)
void lower_group_norm_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const CapturedTensor& x = site.tensor(1);
  const GroupNorm norm(site, x, 6, 8);
  const Size both = bytes_of(dy) + bytes_of(x);
  norm.add(KernelKind::reduction, "group_sums", x.elements, kMomentFlops, both, norm.factors);
  if (site.flag_of_list(9, 0)) {
    norm.add(KernelKind::elementwise, "group_factors", norm.channels, 2, norm.factors, norm.factors);
    norm.add(KernelKind::elementwise, "group_norm", x.elements, kGroupGradient, both + norm.factors,
             bytes_of(x), norm.of_result());
  }
  if (site.flag_of_list(9, 1) || site.flag_of_list(9, 2)) {
    norm.add(KernelKind::elementwise, "group_weights", norm.channels, 2, norm.factors,
             fixed_size(checked_multiply(site.whole(6), 2 * kFp32Bytes)));
  }
}

}  // namespace tbdsim
