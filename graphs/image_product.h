// Convolutions of one tap and stride 1 of NCHW images on tensor cores, of frameworks whose library computes
// them as matrix products (Conv1x1::image_products): cuDNN 9 copies no image to NHWC for them. Around others
// it copies filters of several taps, too, and results back in a kernel of its own. In half precision the
// forward and the data pass multiply each image by the weights; in column-major matrices, whose rows are an
// image's pixels,
//
//   forward  Y = X * W    data  dX = dY * W'
//
// Source: this project's records of an H100 (calibrate/records/h100_sxm): each such call is one kernel of
// cuBLAS, in half precision as fast as that of NHWC images where rows are multiples of 16 bytes. PyTorch 2.11
// runs ResNet-50 in TF32 (calibrate/runs/train.py) with 43 copies to NHWC and 21 back in the forward pass, 92
// and 41 in the backward pass: those of images and filters of the 21 convolutions that are no such product.
#pragma once

#include <cstdint>
#include <utility>

#include "graphs/kernel.h"
#include "graphs/lowering.h"

namespace tbdsim {

[[nodiscard]] inline bool is_half(MathType math) { return math == MathType::fp16 || math == MathType::bf16; }

// True if a library whose convolutions are computed in `math` copies NCHW images to NHWC, and knows image
// products.
[[nodiscard]] inline bool knows_image_products(MathType math, const Lowering& lowering) {
  return lowering.conv_1x1 == Conv1x1::image_products && math != MathType::fp32;
}

// True if the convolution is a product of each image.
[[nodiscard]] inline bool is_image_product(const ConvShape& c) {
  const bool one_tap = c.kernel_height * c.kernel_width == 1 && c.pad_height + c.pad_width == 0;
  return one_tap && c.stride_height * c.stride_width == 1 && c.groups == 1 && !c.transposed;
}

// True if this pass of a convolution that could be an image product copies its images to NHWC instead. In
// half precision an image's rows of 196 or 49 pixels are no multiples of 16 bytes, and products of such rows
// are slow (costmodel/families/row_alignment.h): the library copies images where that takes less time, which
// is where channels and filters are many. Their width, channels * filters / (channels + filters), is the
// number of multiply-adds for each number copied. Copies begin between widths of 55 and 75 where rows are
// multiples of 2 bytes, between 210 and 280 where they are of 8 (the same records, steps in fp16: 130 such
// convolutions), and for the gradient of the weights between 50 and 65, and 100 and 105; of rows of 4 bytes
// there were none, their widths lie between.
[[nodiscard]] inline bool copies_images(const ConvShape& c, Phase phase, MathType math) {
  constexpr std::int64_t kAligned = 8, kOf8Bytes = 4, kOf4Bytes = 2;  // pixels
  struct Widths {
    double of_8_bytes, of_4_bytes, of_2_bytes;
  };
  constexpr Widths kOfImages{240, 120, 65}, kOfWeights{102, 76, 57};
  const std::int64_t pixels = c.height * c.width;
  if (!is_half(math) || pixels % kAligned == 0) return false;
  const Widths& least = phase == Phase::backward_weights ? kOfWeights : kOfImages;
  const auto channels = static_cast<double>(c.channels), filters = static_cast<double>(c.filters);
  const double width = channels * filters / (channels + filters);
  if (pixels % kOf4Bytes != 0) return width >= least.of_2_bytes;
  return width >= (pixels % kOf8Bytes != 0 ? least.of_4_bytes : least.of_8_bytes);
}

// The products of the forward or the data pass.
[[nodiscard]] inline GemmShape image_products(const ConvShape& c, Phase phase) {
  GemmShape shape{.m = {c.height * c.width, 0}, .n = {c.filters, 0}, .k = {c.channels, 0}, .batch = c.images};
  if (phase == Phase::backward_data) {
    std::swap(shape.n, shape.k);
    shape.transpose_b = true;
  }
  return shape;
}

}  // namespace tbdsim
