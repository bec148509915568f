// Norms of rows whose operations are fused, by the kernels of the lowering (NormKernels).
#pragma once

#include "graphs/layer.h"

namespace tbdsim {

struct RowNorm {
  std::string_view op;
  Shape x;
  MatrixShape rows;  // rows that are normalised, their numbers
  std::int64_t forward_flops = 0, data_flops = 0,
               weight_flops = 0;  // of each number; gradients of x, of weights
  std::int64_t parameters = 1;    // tensors of the length of a row
};

// Appends the forward kernel, which reads x and writes as much.
void append_forward(const RowNorm& norm, const LoweringContext& how, std::vector<Kernel>& kernels);
// Appends the kernels of the gradients that the layer needs, which read x and its output's gradient.
void append_backward(const RowNorm& norm, const LayerContext& site, const LoweringContext& how,
                     std::vector<Kernel>& kernels);

}  // namespace tbdsim
