#include "costmodel/residuals/kriging.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

constexpr Kriging kKriging{.amplitude = 0.3, .length = 2, .nugget = 0.13, .repeat = 0.05};
constexpr double kRounding = 1e-15;
constexpr double kSingle = 3e-7;

TEST(Exponential, OfFourNumbers) {
  for (float x = -86; x <= 0; x += 0.37F) {
    const Floats several = exponential(Floats{x, x / 2, x / 70, 0});
    EXPECT_NEAR(several[0] / std::exp(x), 1, kSingle) << x;
    EXPECT_NEAR(several[1] / std::exp(x / 2), 1, kSingle) << x;
    EXPECT_NEAR(several[2] / std::exp(x / 70), 1, kSingle) << x;
    EXPECT_EQ(several[3], 1);
  }
  const Floats least = exponential(Floats{-88, -1e30F, -std::numeric_limits<float>::infinity(), -87});
  for (std::size_t i = 0; i < kFloats; ++i) EXPECT_EQ(least[i], least[3]);
}

TEST(Covariance, OfFourSquaresAtOnce) {
  const Covariance covariance(kKriging);
  for (const Floats& distances :
       {Floats{0, 1e-6F, 0.5, 3}, Floats{12, 70, 5'000, 1e9F}, Floats{1, 2, 3, 4}}) {
    const Floats found = covariance.of_squares(distances * distances);
    for (std::size_t i = 0; i < kFloats; ++i)
      EXPECT_NEAR(found[i], covariance(distances[i]), kSingle) << distances[i];
  }
}

// One neighbour with covariance c to itself and k to the point: mean k r / c, told k k / c.
TEST(KrigingSystem, OfOneNeighbour) {
  KrigingSystem system;
  system.set_covariance(7, 7, 4);
  system.set_value(7, 8);
  system.factorize();
  Numbers to_point{};
  EXPECT_EQ(system.about(to_point).mean, 0);
  to_point.set(7, 0.75);
  EXPECT_DOUBLE_EQ(system.about(to_point).mean, 1.5);
  EXPECT_DOUBLE_EQ(system.about(to_point).told, 0.140625);
}

// C = (2 1; 1 2), k = (1, 0.5), r = (3, 6): C^-1 r = (0, 3), C^-1 k = (0.5, 0).
TEST(KrigingSystem, OfTwoNeighbours) {
  KrigingSystem system;
  for (std::size_t i = 0; i < 2; ++i) system.set_covariance(i, i, 2);
  system.set_covariance(1, 0, 1);
  system.set_value(0, 3);
  system.set_value(1, 6);
  system.factorize();
  const KrigingSystem::KrigingEstimate told = system.about({{Doubles{1, 0.5, 0, 0}}});
  EXPECT_DOUBLE_EQ(told.mean, 1.5);
  EXPECT_DOUBLE_EQ(told.told, 0.5);
}

// C = A A' with A of ones below and on the diagonal, k = C x: k C^-1 r = x r, k C^-1 k = x C x.
TEST(KrigingSystem, OfAllNeighbours) {
  KrigingSystem system;
  Numbers to_point{};
  double mean = 0, told = 0;
  const auto x = [](std::size_t i) { return 1 - 0.3 * static_cast<double>(i % 5); };
  for (std::size_t i = 0; i < kMostNeighbours; ++i) {
    const double value = std::sin(static_cast<double>(i));
    system.set_value(i, value);
    double k = 0;
    for (std::size_t j = 0; j < kMostNeighbours; ++j) {
      const auto shared = static_cast<double>(std::min(i, j) + 1);
      if (j <= i) system.set_covariance(i, j, shared);
      k += shared * x(j);
    }
    to_point.set(i, k);
    mean += x(i) * value;
    told += x(i) * k;
  }
  system.factorize();
  EXPECT_NEAR(system.about(to_point).mean, mean, 1e-13);
  EXPECT_NEAR(system.about(to_point).told / told, 1, kRounding);
}

// A neighbour that says the same as another counts once.
TEST(KrigingSystem, OfOneNeighbourTwice) {
  KrigingSystem system;
  system.set_covariance(0, 0, 4);
  system.set_covariance(1, 0, 4);
  system.set_covariance(1, 1, 4);
  system.set_value(0, 8);
  system.set_value(1, 8);
  system.factorize();
  const KrigingSystem::KrigingEstimate told = system.about({{Doubles{2, 2, 0, 0}}});
  EXPECT_DOUBLE_EQ(told.mean, 4);
  EXPECT_DOUBLE_EQ(told.told, 1);
}

}  // namespace
}  // namespace tbdsim
