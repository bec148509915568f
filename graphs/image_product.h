// Convolutions of one tap and stride 1 of NCHW images on tensor cores, of frameworks whose library computes
// them as matrix products (Conv1x1::image_products): cuDNN 9 copies no image to NHWC for them, and the
// results of others back in a kernel of its own. In half precision the forward and the data pass multiply
// each image by the weights; in column-major matrices, whose rows are an image's pixels,
//
//   forward  Y = X * W    data  dX = dY * W'
//
// In half precision the gradient of the weights copies images whose rows are no multiples of 4 bytes.
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

// True if this pass of an image product copies its images to NHWC.
[[nodiscard]] inline bool copies_images(const ConvShape& c, Phase phase, MathType math) {
  constexpr std::int64_t kPixelsOf4Bytes = 2;
  return is_half(math) && phase == Phase::backward_weights && c.height * c.width % kPixelsOf4Bytes != 0;
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
