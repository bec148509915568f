#include "costmodel/residuals/kriging_system.h"

#include <cmath>

namespace tbdsim {
namespace {

constexpr std::size_t n = kMaxNeighbors;
using Values = std::array<double, n>;

// The dot product of the first `count` elements.
double dot(const Values& a, const Values& b, std::size_t count) {
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

// Row by row (Cholesky and Banachiewicz), each of L and L^-1. A library's routines for matrices of any size
// take four times as long for one of twelve rows.
KrigingFactors factorize(const KrigingSystem& system) {
  KrigingFactors factors;
  SquareMatrix<n> root{};
  SquareMatrix<n>& inverse = factors.inverse_root;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j)
      root[i][j] = (system.covariance[i][j] - dot(root[i], root[j], j)) * inverse[j][j];
    root[i][i] = std::sqrt(system.covariance[i][i] - dot(root[i], root[i], i));
    // L L^-1 = 1: the row of L^-1 is the unit vector less those above it, by L's elements.
    inverse[i][i] = 1 / root[i][i];
    for (std::size_t k = 0; k < i; ++k) {
      for (std::size_t j = 0; j <= k; ++j) inverse[i][j] -= root[i][k] * inverse[k][j];
    }
    for (std::size_t j = 0; j < i; ++j) inverse[i][j] *= inverse[i][i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double whitened = dot(inverse[i], system.residuals, i + 1);  // L^-1 r
    for (std::size_t j = 0; j <= i; ++j) factors.weights[j] += inverse[i][j] * whitened;
  }
  return factors;
}

}  // namespace tbdsim
