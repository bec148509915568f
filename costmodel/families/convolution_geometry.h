// Sizes of a convolution in the letters of its algorithms: N images, C channels, K filters of R * S taps,
// input H * W, output P * Q; G groups, each of K / G filters over C / G channels; the passes forward,
// gradient by the input ("data") and gradient by the weights
// ("weights").
#pragma once

#include <algorithm>

#include "costmodel/call.h"
#include "costmodel/families/thread_blocks.h"

namespace tbdsim {

// `count` matrix products, each of m * n results that are sums of `depth` products.
struct ConvProduct {
  double m = 1, n = 1, depth = 1, count = 1;
};

// Channels or filters that a kernel on tensor cores multiplies for each tap of a filter: its tiles go 32 deep
// in half precision and end with the tap (cuDNN's kernels 256x64_32x4 and 128x64x32 of an H100's steps, which
// take 1.7 times as long for 18 channels as products of 24 would). Up to 8 of them, as of an image, have
// kernels of their own; one tap has no end.
[[nodiscard]] inline double summed_of_tap(const ConvCall& c, double channels) {
  constexpr double kDepthOfTile = 32, kFewChannels = 8;
  if (c.element_bytes != 2 || c.limits.pads_channels == PadsChannels::never) return channels;
  const bool whole = c.groups > 1 || c.kernel_height * c.kernel_width == 1 || channels <= kFewChannels;
  return whole ? channels : kDepthOfTile * ceil_nonneg(channels / kDepthOfTile);
}

// The implicit GEMM of a pass, one for each group.
[[nodiscard]] inline ConvProduct conv_product(const ConvCall& c) {
  const double taps = c.kernel_height * c.kernel_width;
  const double outputs = c.images * c.out_height * c.out_width;
  const double inputs = c.images * c.height * c.width;
  const double channels = c.channels / c.groups;
  const double filters = c.filters / c.groups;
  if (c.phase == Phase::backward_data)
    return {.m = inputs, .n = channels, .depth = summed_of_tap(c, filters) * taps, .count = c.groups};
  if (c.phase == Phase::backward_weights)
    return {.m = channels * taps, .n = filters, .depth = outputs, .count = c.groups};
  return {.m = outputs, .n = filters, .depth = summed_of_tap(c, channels) * taps, .count = c.groups};
}

// The image that a pass writes. The data pass reads the forward pass's output and writes its input.
struct ConvRoles {
  double from, to;       // channels read and written
  double height, width;  // of the image written
};

[[nodiscard]] inline ConvRoles conv_roles(const ConvCall& c) {
  if (c.phase == Phase::backward_data) return {c.filters, c.channels, c.height, c.width};
  return {c.channels, c.filters, c.out_height, c.out_width};
}

// Channels of groups stay as they are.
[[nodiscard]] inline bool pads_channels(const ConvCall& c) {
  if (c.groups > 1) return false;
  const PadsChannels pads = c.limits.pads_channels;
  return pads == PadsChannels::always || (pads == PadsChannels::half && c.element_bytes == 2);
}

// Channels or filters as tensor cores take them: multiples of 16 bytes, in each of the convolution's groups.
// 8 of half precision, 4 of TF32 (aligna4_alignc4 in the names of the H100's kernels for three channels).
[[nodiscard]] inline double aligned_channels(double channels, const ConvCall& c) {
  const double of_group = 16 / c.element_bytes * c.groups;
  return of_group * ceil_nonneg(channels / of_group);
}

// The call that is computed in place of `c`: with padded channels and filters, if they are padded.
[[nodiscard]] inline ConvCall padded(ConvCall c) {
  if (!pads_channels(c)) return c;
  c.channels = aligned_channels(c.channels, c);
  c.filters = aligned_channels(c.filters, c);
  return c;
}

// Multiply-adds of a call with aligned channels and filters over those of the call, 1 where they are aligned.
// The results of a group fill a tile anyway (convolution_grid.h): of its sums alone the depth is padded.
[[nodiscard]] inline double conv_padding(const ConvCall& c) {
  if (c.groups == 1)
    return aligned_channels(c.channels, c) * aligned_channels(c.filters, c) / (c.channels * c.filters);
  if (c.phase == Phase::backward_weights) return 1;
  const double summed = c.phase == Phase::backward_data ? c.filters : c.channels;
  return aligned_channels(summed, c) / summed;
}

// Bytes read and written by copies of NHWC images whose channels are padded (nhwcAddPaddingKernel in the
// steps of an H100, calibrate/records/h100_sxm): each pass reads or writes both images. The copies that NCHW
// images have anyway pad them too; filters of one tap are multiplied by kernels for any alignment instead.
[[nodiscard]] inline double bytes_of_padding(const ConvCall& c, const ConvCall& to) {
  if (!c.channels_last || c.kernel_height * c.kernel_width == 1) return 0;
  const double input =
      to.channels > c.channels ? c.images * c.height * c.width * (c.channels + to.channels) : 0;
  const double output =
      to.filters > c.filters ? c.images * c.out_height * c.out_width * (c.filters + to.filters) : 0;
  return c.element_bytes * (input + output);
}

// A call with the sizes that all its algorithms share, of padded channels where they are padded.
struct ConvSizes : ConvCall {
  ConvProduct product = conv_product(*this);
  ConvRoles roles = conv_roles(*this);
  double taps = kernel_height * kernel_width;
  double weights = channels * filters / groups;  // of each tap
  double outputs = images * out_height * out_width;
  double tensors =  // bytes of input, output and filters
      element_bytes * (images * channels * height * width + outputs * filters + weights * taps);
  // Non-fused Winograd F(4x4): patches of 4 x 4 results; one transformed has (4 + 3 - 1)^2 or (4 + 5 - 1)^2
  // elements.
  double patches = images * ceil_nonneg(roles.height / 4) * ceil_nonneg(roles.width / 4);
  double nonfused_products = kernel_height == 3 ? 36 : 64;
  double nonfused_elements = nonfused_products * (patches * (channels + filters) + weights);
  double padding_bytes = 0;  // read and written by copies of images to and from padded channels

  ConvSizes(const ConvCall& call)  // NOLINT(google-explicit-constructor)
      : ConvCall(padded(call)) {
    if (pads_channels(call)) padding_bytes = bytes_of_padding(call, *this);
  }
};

// Bytes of an element that Winograd's or Fourier's algorithm has transformed.
[[nodiscard]] inline double transformed_bytes(const ConvSizes& c) {
  return c.limits.wide_transforms ? 4 : c.element_bytes;
}

// FFT tiling cuts the padded input into tiles of 32 x 32, each of which yields (33 - R) * (33 - S) results.
// The spectrum of 32 x 32 real numbers is 32 x 17 complex ones: the others are their conjugates. These 17 are
// multiplied; cuDNN's workspace has rows of 18, as measured (simulate/memory/autotune_workspace.h), so that
// conv_workspace, which counts 17, is 6 % low.
inline constexpr double kFftTile = 32;
inline constexpr double kFftBins = 32 * 17;

[[nodiscard]] inline double fft_tiles(const ConvCall& c) {
  const double tile_height = kFftTile + 1 - c.kernel_height;  // results of a tile
  const double tile_width = kFftTile + 1 - c.kernel_width;
  const double rows = ceil_nonneg(c.out_height / tile_height);
  const double columns = ceil_nonneg(c.out_width / tile_width);
  return c.images * rows * columns;
}

// Real numbers in the spectra, two for a complex one.
[[nodiscard]] inline double fft_image_elements(const ConvSizes& c) {
  return 2 * kFftBins * fft_tiles(c) * (c.channels + c.filters);
}
[[nodiscard]] inline double fft_filter_elements(const ConvSizes& c) { return 2 * kFftBins * c.weights; }

// Bytes of the input that no window covers, where the filter is narrower than the stride: NHWC pixels are
// read one by one.
[[nodiscard]] inline double bytes_passed_over(const ConvSizes& c) {
  if (c.phase == Phase::backward_data) return 0;
  const double pixels = c.height * c.width - c.out_height * c.out_width * c.taps;
  return c.element_bytes * c.images * c.channels * std::max(pixels, 0.0);
}

// Bytes of scratch memory of an algorithm.
[[nodiscard]] inline double conv_workspace(const ConvSizes& c, const Choice& choice) {
  switch (choice.algorithm) {
    case Algorithm::winograd:
      return transformed_bytes(c) * 16 * c.weights;
    case Algorithm::winograd_nonfused:
      return transformed_bytes(c) * c.nonfused_elements;
    case Algorithm::fft_tiling:
      return transformed_bytes(c) * (fft_image_elements(c) + fft_filter_elements(c));
    case Algorithm::col2im:
      return 0;  // BWD_DATA_ALGO_0 adds the columns into the gradient as it makes them
    default:
      return choice.splits > 1 ? 4 * c.product.m * c.product.n * c.product.count * choice.splits : 0;
  }
}

}  // namespace tbdsim
