#include "graphs/depthwise.h"

namespace tbdsim {
namespace {

// PyTorch from 1.11 on with cuDNN 8.2 and later: aten/src/ATen/native/Convolution.cpp, use_cudnn_depthwise
// and check_cudnn_depthwise_workload_with_filter, for more than one image.
bool library_takes_half(const ConvShape& s) {
  constexpr std::int64_t kLeastChannels = 32, kLeastWidth = 7, kManyChannels = 512;
  constexpr std::int64_t kWideChannels = 256, kWide = 28;
  if (s.channels < kLeastChannels || s.dilation_height * s.dilation_width > 1) return false;
  if (s.height == 1 && s.stride_width == 1) return true;  // one-dimensional
  const std::int64_t filter = s.kernel_width;
  const bool known_filter = s.kernel_height == filter && (filter == 1 || filter == 3 || filter == 5);
  if (s.stride_height != s.stride_width || !known_filter || s.width < kLeastWidth) return false;
  if (s.stride_width == 1) return true;
  if (s.stride_width != 2 || filter == 1) return false;
  return s.channels >= kManyChannels || (s.channels >= kWideChannels && s.width >= kWide);
}

}  // namespace

bool has_framework_kernel(const ConvShape& shape, MathType math, Layout layout, DepthwiseKernels kernels) {
  if (!is_depthwise(shape) || kernels == DepthwiseKernels::library) return false;
  if (kernels == DepthwiseKernels::own) return true;
  return layout == Layout::nchw && !(math == MathType::fp16 && library_takes_half(shape));
}

}  // namespace tbdsim
