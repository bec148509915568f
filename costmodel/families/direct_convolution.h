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
// cuDNN, images in NCHW: conv2d_grouped_direct_kernel, dgrad2d_grouped_direct_kernel, wgrad2d_...; and in
// NHWC: conv2d_c1_k1_nhwc_kernel and its like for one channel a group, and what computes more channels.
// Counts: chosen by a fit to networks trained by PyTorch 1.12 with cuDNN 8.3 on an RTX 3090 (timm's
// benchmark, the quarter of its models that is for fitting; LCNet, FBNetV3, RegNet, NFNet and others), with
// factors for all other kernels free.
inline constexpr DirectKernel kOfLibrary{.start = 60, .forward = 5, .data = 5, .weights = 7};
inline constexpr DirectKernel kOfLibraryNhwcDepthwise{
    .start = 200, .forward = 3.3, .data = 3.3, .weights = 5};
inline constexpr DirectKernel kOfLibraryNhwc{.start = 900, .forward = 6.5, .data = 6.5, .weights = 6.5};

[[nodiscard]] inline const DirectKernel& direct_kernel(const ConvCall& c) {
  if (c.framework_kernel) return kOfFramework;
  if (!c.channels_last) return kOfLibrary;
  return c.groups == c.channels ? kOfLibraryNhwcDepthwise : kOfLibraryNhwc;
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
