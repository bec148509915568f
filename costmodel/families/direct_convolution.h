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
// 128: kIssuedPerClock; 512 threads on an SM hide their latency; start and each: counts of instructions of
// the kernel (DirectKernel). Gradients by the weights in a framework's own kernel:
// instructions_of_own_weights.
#pragma once

#include <algorithm>

#include "costmodel/families/convolution_geometry.h"

namespace tbdsim {

// Instructions of a thread: to find its place, and for each multiply-add.
struct DirectKernel {
  double start, each;
};

[[nodiscard]] inline bool is_strided(const ConvCall& c) { return c.stride_height * c.stride_width > 1; }

// PyTorch, aten/src/ATen/native/cuda/DepthwiseConv2d.cu, forward and by the input: divisions find a pixel,
// each tap compares its place with the image's borders. TensorFlow's and MXNet's
// (depthwise_conv_op_gpu.cu.cc, depthwise_convolution_tf.cuh) do the same. Filters of 1, 3 and 5 have kernels
// with unrolled loops: an H100 (calibrate/records/h100_sxm, 86 calls of 3 x 3 and 5 x 5 in three types, with
// either stride: 1.5 to 2.5 % in the mean). Others: 7 x 7 to 31 x 31 on an RTX 2080 Ti (Ding et al., "Scaling
// Up Your Kernels to 31x31", CVPR 2022, table 1, PyTorch, from memory); ConvMixer trained by PyTorch 1.12.
[[nodiscard]] inline DirectKernel own_kernel(const ConvCall& c) {
  const double filter = c.kernel_height;
  const bool unrolled = filter == c.kernel_width && (filter == 1 || filter == 3 || filter == 5);
  if (!unrolled) return {.start = 400, .each = 19};
  if (c.phase == Phase::forward) return {.start = 175, .each = 16.5};
  return is_strided(c) ? DirectKernel{.start = 450, .each = 11.5} : DirectKernel{.start = 530, .each = 4.2};
}

// cuDNN, one channel a group, images in NCHW. Stride 1: chosen by a fit to networks trained by PyTorch 1.12
// with cuDNN 8.3 on an RTX 3090 (timm's benchmark, the quarter of its models that is for fitting; LCNet,
// FBNetV3 and others), with factors for all other kernels free; an H100 agrees forward and by the input.
// Other strides: the H100's 14 calls.
[[nodiscard]] inline DirectKernel library_depthwise(const ConvCall& c) {
  if (c.phase == Phase::backward_weights) return {.start = 60, .each = 7};
  if (!is_strided(c)) return {.start = 60, .each = 5};
  return c.phase == Phase::forward ? DirectKernel{.start = 75, .each = 15}
                                   : DirectKernel{.start = 470, .each = 3.5};
}

// The same in NHWC. From Hopper on, with cuDNN 9: conv2d_c1_k1_nhwc_specialized and its like in the steps of
// an H100 (the same records). Filters of 3 x 3 and 5 x 5: 187 calls, off by 12, 24 and 31 % in the mean by
// pass; by the input with a stride 22 calls, 2 %. Wider ones: 7 x 7 in half precision, 8 calls by pass; in
// fp32 and TF32 the 11 of one network, of which those by the input differ up to sevenfold. Before Hopper,
// with cuDNN 8: an RTX 3090's networks come out 6.9 % off (the quarter that may be looked at); with the
// H100's newer kernels by the input and the weights they would be 8 to 13 % faster. The kernels with a stride
// are those of cuDNN's older interface on an H100 (dgrad2d_grouped_direct_kernel, 0.1 of the bandwidth: 5
// calls, 1 %).
[[nodiscard]] inline DirectKernel library_nhwc_depthwise(const ConvCall& c, const Hardware& hardware) {
  constexpr double kHopper = 90, kNarrow = 25, kWidestHalf = 2;  // taps; bytes
  const bool is_older = hardware.compute_capability < kHopper;
  const bool wide = !is_older && c.kernel_height * c.kernel_width > kNarrow;
  const bool wide_fp32 = wide && c.element_bytes > kWidestHalf;
  if (c.phase == Phase::forward) {
    if (wide_fp32) return {.start = 0, .each = 13.7};
    return wide ? DirectKernel{.start = 35, .each = 5} : DirectKernel{.start = 30, .each = 2.75};
  }
  if (c.phase == Phase::backward_weights) {
    if (wide_fp32) return {.start = 0, .each = 140};
    return is_older ? DirectKernel{.start = 30, .each = 8.5} : DirectKernel{.start = 60, .each = 4};
  }
  if (wide_fp32) return {.start = 0, .each = 45};
  if (is_strided(c))
    return is_older ? DirectKernel{.start = 260, .each = 40} : DirectKernel{.start = 27, .each = 9.25};
  return wide ? DirectKernel{.start = 44, .each = 11.25} : DirectKernel{.start = 30, .each = 2.75};
}

// cuDNN, several channels a group, NCHW: conv2d_grouped_direct_kernel, dgrad2d_..., wgrad2d_... take 40 to
// 45, 31 to 35 and 59 to 79 instructions a multiply-add with 4, 8, 16 and 32 channels a group, in fp16 as in
// fp32 (the same records). NHWC: a fit to RegNet and NFNet of the RTX 3090's networks above.
[[nodiscard]] inline DirectKernel library_groups(const ConvCall& c) {
  if (c.channels_last) return {.start = 900, .each = 6.5};
  const bool weights = c.phase == Phase::backward_weights;
  return {.start = 0, .each = weights ? 60.0 : c.phase == Phase::backward_data ? 32.0 : 40.0};
}

[[nodiscard]] inline DirectKernel direct_kernel(const ConvCall& c, const Hardware& hardware) {
  if (c.framework_kernel) return own_kernel(c);
  if (c.groups != c.channels) return library_groups(c);
  return c.channels_last ? library_nhwc_depthwise(c, hardware) : library_depthwise(c);
}

inline constexpr double kDirectBandwidth = 0.8;

// Instructions of PyTorch's own kernel for gradients by the weights (conv_depthwise2d_grad_weight_kernel): a
// block of 256 threads sums one tap of a filter, a warp an image at a time, 32 pixels at a time; three and a
// half blocks on an SM hide their latency. Counts: 43 calls on an H100 in three types, 7 % in the mean.
[[nodiscard]] inline double instructions_of_own_weights(const ConvSizes& c, double sm_count) {
  constexpr double kOfPixel = 48, kOfImage = 100, kWarp = 32, kBlocksToHideLatency = 3.5;
  const double blocks =
      std::max(c.filters * (c.channels / c.groups) * c.taps, kBlocksToHideLatency * sm_count);
  const double steps = ceil_nonneg(c.out_height * c.out_width / kWarp);
  return blocks * c.images * kWarp * (kOfPixel * steps + kOfImage);
}

// Instructions of all threads.
[[nodiscard]] inline double direct_instructions(const ConvSizes& c, const Hardware& hardware) {
  constexpr double kThreadsToHideLatency = 512;  // on an SM
  if (c.framework_kernel && c.phase == Phase::backward_weights)
    return instructions_of_own_weights(c, hardware.sm_count);
  const DirectKernel kernel = direct_kernel(c, hardware);
  const bool data = c.phase == Phase::backward_data;
  const double results = data ? c.images * c.channels * c.height * c.width : c.outputs * c.filters;
  const double depth = (data ? c.filters : c.channels) / c.groups * c.taps;
  return std::max(results, kThreadsToHideLatency * hardware.sm_count) * (kernel.start + kernel.each * depth);
}

}  // namespace tbdsim
