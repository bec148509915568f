#include "costmodel/kriging.h"

#include "costmodel/wide_vectors.h"

namespace tbdsim {

// C = L D L'. Eliminating in k and r too leaves L^-1 k and L^-1 r in their rows: both products follow.
TBDSIM_WIDE_VECTORS KrigingSystem::Solution KrigingSystem::solve() {
  Solution solution{0, 0};
  for (std::size_t j = 0; j < kMost; ++j) {
    const auto& pivot = columns_[j];
    if (pivot[place(j)] <= 0) continue;  // rounding: the neighbour repeats others
    const double inverse = 1 / pivot[place(j)];
    for (std::size_t l = j + 1; l < kMost; ++l) {
      auto& column = columns_[l];
      const double factor = pivot[place(l)] * inverse;
      for (std::size_t i = 0; i <= place(l); i += kAtOnce) {
        for (std::size_t v = i; v < i + kAtOnce; ++v) column[v] -= factor * pivot[v];
      }
    }
    solution.mean += pivot[kToPoint] * pivot[kValue] * inverse;
    solution.told += pivot[kToPoint] * pivot[kToPoint] * inverse;
  }
  return solution;
}

}  // namespace tbdsim
