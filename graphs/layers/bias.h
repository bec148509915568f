// Kernels of a bias: added to a result, in place, and its gradient, the sum of what comes back over all but
// channels or features.
#pragma once

#include "graphs/layer.h"

namespace tbdsim {

class SpecMap;

// The value of a layer's key `bias`.
[[nodiscard]] bool has_bias(SpecMap& keys, bool unless_given);

// How the threads of an operator reach numbers if one operand is smaller than the result: PyTorch computes
// the address of each (aten/native/cuda/CUDALoops.cuh, elementwise_kernel: no vectors where not all is
// contiguous).
[[nodiscard]] Access broadcast_access(const Lowering& lowering);

// `shape`: channel_matrix or position_matrix of the result.
[[nodiscard]] Kernel bias_add(const LayerContext& site, const LoweringContext& how, const MatrixShape& shape);
[[nodiscard]] Kernel bias_gradient(const LayerContext& site, const Precision& precision, std::int64_t biases,
                                   const MatrixShape& shape);

}  // namespace tbdsim
