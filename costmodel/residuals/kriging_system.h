// The linear system of kriging, C w = r, solved once for all calls that have the same neighbors.
#pragma once

#include <array>

#include "costmodel/residuals/lanes.h"

namespace tbdsim {

template <std::size_t n>
using SquareMatrix = std::array<std::array<double, n>, n>;  // [row][column]

// C and r (kriging.h). Rows and columns that are not set are of independent values 0 with variance 1: they
// contribute nothing.
struct KrigingSystem {
  SquareMatrix<kMaxNeighbors> covariance{};  // the lower triangle; positive definite
  std::array<double, kMaxNeighbors> residuals{};

  KrigingSystem() {
    for (std::size_t i = 0; i < kMaxNeighbors; ++i) covariance[i][i] = 1;
  }
};

// C = L L^T.
struct KrigingFactors {
  SquareMatrix<kMaxNeighbors> inverse_root{};   // L^-1, lower triangle
  std::array<double, kMaxNeighbors> weights{};  // C^-1 r
};
[[nodiscard]] KrigingFactors factorize(const KrigingSystem& system);

}  // namespace tbdsim
