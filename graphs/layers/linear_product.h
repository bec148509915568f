// The matrix products of a linear map of many vectors: y = W * x for each of `rows` vectors x.
#pragma once

#include "graphs/kernel.h"
#include "graphs/precision.h"

namespace tbdsim {

// Forward y = W * x; backward_data dx = W' * dy; backward_weights dW = sum of dy * x'.
[[nodiscard]] Kernel linear_product(Phase phase, Size rows, std::int64_t in, std::int64_t out,
                                    const Precision& precision);

}  // namespace tbdsim
