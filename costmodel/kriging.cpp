#include "costmodel/kriging.h"

namespace tbdsim {

TBDSIM_WIDE_VECTORS void Covariance::apply(std::span<Doubles> distances) const {
  for (Doubles& distance : distances) {
    const Integers same = distance < kSamePlace;
    const Doubles own = Doubles{} + (nugget2_ - repeat2_);
    Doubles shared = distance / -length_;
    exponentiate(shared);
    distance = amplitude2_ * shared + (Doubles)((Integers)own & same);
  }
}

// C = L D L'. Eliminating in k and r too leaves L^-1 k and L^-1 r in their rows: both products follow.
TBDSIM_WIDE_VECTORS KrigingSystems::Solution KrigingSystems::solve() {
  Solution solution;
  for (std::size_t j = 0; j < kMost; ++j) {
    const auto& pivot = columns_[j];
    // Not above 0, by rounding: the neighbour repeats others.
    const Doubles inverse = (Doubles)((Integers)(1 / pivot[j]) & (pivot[j] > 0));
    for (std::size_t l = j + 1; l < kMost; ++l) {
      auto& column = columns_[l];
      const Doubles factor = pivot[l] * inverse;
      for (std::size_t i = l; i < kRows; ++i) column[i] -= factor * pivot[i];
    }
    solution.mean += pivot[kToPoint] * pivot[kValue] * inverse;
    solution.told += pivot[kToPoint] * pivot[kToPoint] * inverse;
  }
  return solution;
}

}  // namespace tbdsim
