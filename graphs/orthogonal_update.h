// Updates of whole matrices by their momentum made orthogonal (Muon: Jordan et al., 2024), in five steps of
// Newton and Schulz, in bf16:
//
//   A = X X'    B = b A + c A A    X = a X + B X      X of r x c numbers, r <= c, else its transpose
//
// which are 2 r r c + 2 r r r + 2 r r c flop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graphs/kernel.h"
#include "graphs/layer_graph.h"
#include "graphs/optimizer.h"
#include "graphs/precision.h"

namespace tbdsim {

struct Matrices {
  std::int64_t count = 1;  // of the same size, as those of experts
  std::int64_t rows = 0;   // no more than columns
  std::int64_t columns = 0;
};

// The matrices that a layer's parameter consists of; none for vectors, tables and the scores of words, which
// element-wise rules update.
[[nodiscard]] std::optional<Matrices> matrices_of(const GraphLayer& layer, const ParameterTensor& tensor);

// The rule for parameters that are no matrices: AdamW beside an orthogonal one, else the optimizer's own.
[[nodiscard]] const Optimizer& rule_by_element(const Optimizer& optimizer);

// The rule by which this parameter is updated.
[[nodiscard]] const Optimizer& rule_of(const Optimizer& optimizer, const GraphLayer& layer,
                                       const ParameterTensor& tensor);

// The kernels that update one parameter: momentum, norm, products, the weights.
[[nodiscard]] std::vector<Kernel> orthogonal_update(const Matrices& matrices, const Optimizer& optimizer,
                                                    const Precision& precision);

}  // namespace tbdsim
