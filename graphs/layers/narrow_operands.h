// Kernels that make the operands of a product fp8 or fp4 numbers with scales, out of 16-bit tensors: what the
// recipes of Scaling cost beside the products themselves.
//
//   tensors   torchao, float8_linear.py: of an operand the largest magnitude, then a cast; inputs and weights
//             are cast anew going back; the gradient is cast once, and its copy for the other product transposed
//   rows      the same for every operand of every product, since a scale is of a row along its inner dimension
//   blocks    Transformer Engine: one kernel reads a tensor and writes it for both of its products; before that
//             fp4 needs the largest magnitude; inputs are kept in this form for the backward pass
#pragma once

#include <cstdint>
#include <vector>

#include "graphs/kernel.h"
#include "graphs/precision.h"

namespace tbdsim {

struct LayerContext;

// Sizes of y = W x for each of `rows` vectors x; of `matrices` experts, which share the rows among them.
struct LinearSize {
  Size rows;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t matrices = 1;
};

// Appends the kernels before the product of the forward pass, those before the products that a site's
// gradients need. None where operands are not scaled.
void narrow_forward(const LinearSize& size, const Precision& precision, std::vector<Kernel>& kernels);
void narrow_backward(const LinearSize& size, const LayerContext& site, const Precision& precision,
                     std::vector<Kernel>& kernels);

// Bytes of numbers of the products' type, without and with the scales of blocks.
[[nodiscard]] Size operand_bytes(const Size& numbers, const Precision& precision);
[[nodiscard]] Size block_bytes(const Size& numbers, const Precision& precision);

}  // namespace tbdsim
