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
// depthwise_convolution_tf.cuh) do the same.
inline constexpr DirectKernel kOfFramework{.start = 250, .forward = 19, .data = 19, .weights = 19};
// cuDNN 8, NCHW: conv2d_grouped_direct_kernel, dgrad2d_grouped_direct_kernel, wgrad2d_grouped_direct_kernel.
inline constexpr DirectKernel kOfLibrary{.start = 60, .forward = 5, .data = 5, .weights = 8};
// cuDNN 8, NHWC: conv2d_c1_k1_nhwc_kernel, dgrad2d_c1_k1_nhwc_kernel, wgrad2d_c1_k1_nhwc_kernel.
inline constexpr DirectKernel kOfLibraryNhwc{.start = 60, .forward = 5, .data = 5, .weights = 8};

[[nodiscard]] inline const DirectKernel& direct_kernel(const ConvCall& c) {
  if (c.framework_kernel) return kOfFramework;
  return c.channels_last ? kOfLibraryNhwc : kOfLibrary;
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
