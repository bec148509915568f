#include "costmodel/residuals/kriging.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "costmodel/residuals/kriging_system.h"

namespace tbdsim {
namespace {

constexpr Kriging kKriging{.amplitude = 0.3, .length = 2, .nugget = 0.13, .repeat = 0.05};
constexpr double kRounding = 1e-13;
constexpr double kSingle = 3e-7;

Vector<float> exp_of(Vector<float> x) {
  exponentiate(x);
  return x;
}

TEST(Exponentiate, FourNumbers) {
  for (float x = -86; x <= 0; x += 0.37F) {
    const Vector<float> found = exp_of(Vector<float>{x, x / 2, x / 70, 0});
    EXPECT_NEAR(found[0] / std::exp(x), 1, kSingle) << x;
    EXPECT_NEAR(found[1] / std::exp(x / 2), 1, kSingle) << x;
    EXPECT_NEAR(found[2] / std::exp(x / 70), 1, kSingle) << x;
    EXPECT_EQ(found[3], 1);
  }
  const Vector<float> least =
      exp_of(Vector<float>{-88, -1e30F, -std::numeric_limits<float>::infinity(), -87});
  for (std::size_t i = 0; i < kLanes; ++i) EXPECT_EQ(least[i], least[3]);
}

// amplitude^2 * exp(-d / length), and own^2 = nugget^2 - repeat^2 more at the same place, in both precisions.
TEST(Covariance, OfSquaredDistances) {
  const double distances[kMaxNeighbors] = {0, 1e-6, 0.5, 3, 12, 70, 5'000, 1e9, 1, 2, 3, 4};
  Lanes<double> found{};
  Lanes<float> single{};
  for (std::size_t i = 0; i < kMaxNeighbors; ++i) {
    found.set(i, distances[i] * distances[i]);
    single.set(i, distances[i] * distances[i]);
  }
  Covariance<double>(kKriging).apply_to(found);
  Covariance<float>(kKriging).apply_to(single);
  for (std::size_t i = 0; i < kMaxNeighbors; ++i) {
    const double own = distances[i] < kSamePlace ? 0.13 * 0.13 - 0.05 * 0.05 : 0;
    const double expected = 0.09 * std::exp(-distances[i] / 2) + own;
    EXPECT_NEAR(found.at(i), expected, 1e-15) << distances[i];
    EXPECT_NEAR(single.at(i), expected, kSingle) << distances[i];
  }
}

// |L^-1 k|^2 = k^T C^-1 k.
double explained_by(const KrigingFactors& factors, const std::array<double, kMaxNeighbors>& k) {
  double square = 0;
  for (const auto& row : factors.inverse_root) {
    const double whitened = std::inner_product(row.begin(), row.end(), k.begin(), 0.0);
    square += whitened * whitened;
  }
  return square;
}

// One neighbor with covariance 4 with itself and k = 0.75 with the point: weight 8 / 4, explained k^2 / 4.
TEST(KrigingSystem, OneNeighbor) {
  KrigingSystem system;
  system.covariance[7][7] = 4;
  system.residuals[7] = 8;
  const KrigingFactors factors = factorize(system);
  EXPECT_DOUBLE_EQ(factors.weights[7], 2);
  EXPECT_EQ(factors.weights[0], 0);
  std::array<double, kMaxNeighbors> k{};
  k[7] = 0.75;
  EXPECT_DOUBLE_EQ(explained_by(factors, k), 0.140625);
}

// C = (2 1; 1 2), k = (1, 0.5), r = (3, 6): C^-1 r = (0, 3), C^-1 k = (0.5, 0).
TEST(KrigingSystem, TwoNeighbors) {
  KrigingSystem system;
  system.covariance[0][0] = system.covariance[1][1] = 2;
  system.covariance[1][0] = 1;
  system.residuals = {3, 6};
  const KrigingFactors factors = factorize(system);
  EXPECT_NEAR(factors.weights[0], 0, 1e-15);
  EXPECT_DOUBLE_EQ(factors.weights[1], 3);
  EXPECT_DOUBLE_EQ(explained_by(factors, {1, 0.5}), 0.5);
}

// C_ij = min(i, j) + 1 = A A^T with A of ones on the diagonal and below, k = C x: k^T C^-1 r = x^T r and
// k^T C^-1 k = x^T C x.
TEST(KrigingSystem, AllNeighbors) {
  KrigingSystem system;
  std::array<double, kMaxNeighbors> k{};
  double mean = 0, explained = 0;
  const auto x = [](std::size_t i) { return 1 - 0.3 * static_cast<double>(i % 5); };
  for (std::size_t i = 0; i < kMaxNeighbors; ++i) {
    system.residuals[i] = std::sin(static_cast<double>(i));
    for (std::size_t j = 0; j < kMaxNeighbors; ++j) {
      const auto shared = static_cast<double>(std::min(i, j) + 1);
      if (j <= i) system.covariance[i][j] = shared;
      k[i] += shared * x(j);
    }
    mean += x(i) * system.residuals[i];
    explained += x(i) * k[i];
  }
  const KrigingFactors factors = factorize(system);
  EXPECT_NEAR(std::inner_product(k.begin(), k.end(), factors.weights.begin(), 0.0), mean, kRounding);
  EXPECT_NEAR(explained_by(factors, k) / explained, 1, kRounding);
}

}  // namespace
}  // namespace tbdsim
