// Convolutions of groups on CUDA cores: a thread sums one result, tap by tap ("direct"), because a group has
// too few channels for a matrix product.
//
//   time         = launch + sqrt(issue^2 + memory^2)
//   issue        = instructions / (128 * SMs * clock)
//   instructions = max(results, 512 * SMs) * (start + each * depth)
//   memory       = bytes of input, filters and output / (0.8 * bandwidth)
//
//   pass      results    depth (multiply-adds of a result)
//   forward   N K P Q    (C / G) R S
//   data      N C H W    (K / G) R S: those between the strides are skipped one by one
//   weights   N K P Q    (C / G) R S: each pixel adds to every weight of its filters
//
// 128: kIssuedPerClock; 512 threads on an SM hide their latency; start and each: counts of instructions, by
// who wrote the kernel (DirectKernel).
#pragma once

#include <algorithm>

#include "costmodel/families/convolution_geometry.h"

namespace tbdsim {

// Instructions of a thread: to find its place, and for each multiply-add by pass.
struct DirectKernel {
  double start, forward, data, weights;
};

// PyTorch, aten/src/ATen/native/cuda/DepthwiseConv2d.cu: four divisions find a pixel, each tap compares its
// place with the image's borders. TensorFlow's and MXNet's (depthwise_conv_op_gpu.cu.cc,
// depthwise_convolution_tf.cuh) do the same. Forward: filters of 3 x 3 to 31 x 31 on an RTX 2080 Ti (Ding et
// al., "Scaling Up Your Kernels to 31x31", CVPR 2022, table 1, PyTorch, from memory): 400 instructions for 3
// x 3, 1,300 for 7 x 7, 18 a tap for 31 x 31. ConvMixer (7 x 7) trained by PyTorch 1.12 agrees, with half as
// many more for weights.
inline constexpr DirectKernel kOfFramework{.start = 400, .forward = 19, .data = 19, .weights = 27};
// cuDNN, one channel a group, images in NCHW: chosen by a fit to networks trained by PyTorch 1.12 with
// cuDNN 8.3 on an RTX 3090 (timm's benchmark, the quarter of its models that is for fitting; LCNet, FBNetV3
// and others), with factors for all other kernels free.
inline constexpr DirectKernel kOfLibraryDepthwise{.start = 60, .forward = 5, .data = 5, .weights = 7};
// Several channels a group, NCHW: conv2d_grouped_direct_kernel, dgrad2d_..., wgrad2d_... take 40 to 45, 31 to
// 35 and 59 to 79 instructions a multiply-add with 4, 8, 16 and 32 channels a group, in fp16 as in fp32
// (calibrate/records/h100_sxm).
inline constexpr DirectKernel kOfLibraryGroups{.start = 0, .forward = 40, .data = 32, .weights = 60};
// One channel a group, NHWC: filters of 3 x 3 and 5 x 5 on an H100 (the same records, 49 calls: median error
// 11 % forward and by the input, 21 % by the weights). An RTX 3090's networks, of which nothing was fitted,
// come out 6.9 % off in the mean (7.5 % with constants that were fitted to them; the quarter that may be
// looked at).
inline constexpr DirectKernel kOfLibraryNhwcDepthwise{
    .start = 30, .forward = 2.75, .data = 2.75, .weights = 8.5};
// The gradient by the input where the filter moves by two pixels and more has no such kernel:
// dgrad2d_grouped_direct_kernel, at 0.1 of the bandwidth (the same records: 5 calls, 1 %).
inline constexpr DirectKernel kOfLibraryNhwcStrided{.start = 260, .forward = 0, .data = 40, .weights = 0};
// Several channels a group, NHWC: a fit to RegNet and NFNet of the RTX 3090's networks above.
inline constexpr DirectKernel kOfLibraryNhwcGroups{.start = 900, .forward = 6.5, .data = 6.5, .weights = 6.5};

[[nodiscard]] inline const DirectKernel& direct_kernel(const ConvCall& c) {
  if (c.framework_kernel) return kOfFramework;
  const bool depthwise = c.groups == c.channels;
  if (!c.channels_last) return depthwise ? kOfLibraryDepthwise : kOfLibraryGroups;
  if (!depthwise) return kOfLibraryNhwcGroups;
  const bool strided = c.stride_height * c.stride_width > 1;
  return strided && c.phase == Phase::backward_data ? kOfLibraryNhwcStrided : kOfLibraryNhwcDepthwise;
}

inline constexpr double kDirectBandwidth = 0.8;

// Instructions of all threads.
[[nodiscard]] inline double direct_instructions(const ConvSizes& c, double sm_count) {
  constexpr double kThreadsToHideLatency = 512;  // on an SM
  const DirectKernel& kernel = direct_kernel(c);
  const bool data = c.phase == Phase::backward_data;
  const double results = data ? c.images * c.channels * c.height * c.width : c.outputs * c.filters;
  const double depth = (data ? c.filters : c.channels) / c.groups * c.taps;
  const double each = data                                 ? kernel.data
                      : c.phase == Phase::backward_weights ? kernel.weights
                                                           : kernel.forward;
  return std::max(results, kThreadsToHideLatency * sm_count) * (kernel.start + each * depth);
}

}  // namespace tbdsim
