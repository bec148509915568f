#include "costmodel/kriging.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

constexpr Kriging kKriging{.amplitude = 0.3, .length = 2, .nugget = 0.13, .repeat = 0.05};
constexpr double kRounding = 1e-15;

TEST(Exponentiate, IsTheExponential) {
  for (double x = -690; x <= 0; x += 0.37) {
    Doubles several{x, x / 2, x / 700, 0};
    exponentiate(several);
    EXPECT_NEAR(several[0] / std::exp(x), 1, kRounding) << x;
    EXPECT_NEAR(several[1] / std::exp(x / 2), 1, kRounding) << x;
    EXPECT_NEAR(several[2] / std::exp(x / 700), 1, kRounding) << x;
    EXPECT_EQ(several[3], 1);
  }
  Doubles least{-701, -1e300, -std::numeric_limits<double>::infinity(), -700};
  exponentiate(least);
  for (std::size_t i = 0; i < kLanes; ++i) EXPECT_EQ(least[i], least[3]);
}

TEST(Covariance, OfSeveralDistancesAtOnce) {
  const Covariance covariance(kKriging);
  std::array<Doubles, 2> distances{Doubles{0, 1e-7, 0.5, 3}, Doubles{12, 700, 5'000, 1e9}};
  const auto before = distances;
  covariance.apply(distances);
  for (std::size_t i = 0; i < distances.size(); ++i) {
    for (std::size_t v = 0; v < kLanes; ++v)
      EXPECT_NEAR(distances[i][v], covariance(before[i][v]), kRounding) << before[i][v];
  }
}

// One neighbour with covariance c to itself and k to the point: mean k r / c, told k k / c.
TEST(KrigingSystems, EachLaneHasItsOwn) {
  KrigingSystems systems;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const double k = 0.5 + 0.25 * static_cast<double>(lane);
    systems.set_covariance(lane, 0, 0, 4);
    systems.set_neighbour(lane, 0, k, 8);
  }
  const KrigingSystems::Solution solution = systems.solve();
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const double k = 0.5 + 0.25 * static_cast<double>(lane);
    EXPECT_DOUBLE_EQ(solution.mean[lane], 2 * k);
    EXPECT_DOUBLE_EQ(solution.told[lane], k * k / 4);
  }
}

// C = (2 1; 1 2), k = (1, 0.5), r = (3, 6): C^-1 r = (0, 3), C^-1 k = (0.5, 0).
TEST(KrigingSystems, OfTwoNeighbours) {
  KrigingSystems systems;
  for (std::size_t i = 0; i < 2; ++i) systems.set_covariance(2, i, i, 2);
  systems.set_covariance(2, 1, 0, 1);
  systems.set_neighbour(2, 0, 1, 3);
  systems.set_neighbour(2, 1, 0.5, 6);
  const KrigingSystems::Solution solution = systems.solve();
  EXPECT_DOUBLE_EQ(solution.mean[2], 1.5);
  EXPECT_DOUBLE_EQ(solution.told[2], 0.5);
  EXPECT_EQ(solution.mean[0], 0);  // nothing was set
}

}  // namespace
}  // namespace tbdsim
