// Residuals of measured calls, interpolated: expected numbers by hand from the covariance in the header.
#include "costmodel/residuals/residual_table.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

constexpr Kriging kKriging{.amplitude = 0.3, .length = 2, .nugget = 0.04};

Features at(double x, std::uint64_t group = 0) { return {group, 1, {x}}; }

ResidualTable table(std::vector<ResidualRow> rows) { return ResidualTable(std::move(rows)); }

// nugget 0.04 < 0.05: all of it is `repeat`, so that a call and its row share amplitude^2 = 0.09 of a
// variance of 0.09 + 0.0016: the residual counts 0.09 / 0.0916 times, and 0.0916 - 0.09^2 / 0.0916 of the
// variance is left.
TEST(ResidualTable, OneRowAtTheCallItself) {
  const ResidualEstimate e = table({{at(5), 0.2}}).estimate(at(5), kKriging);
  EXPECT_DOUBLE_EQ(e.mean, 0.2 * 0.09 / 0.0916);
  EXPECT_DOUBLE_EQ(e.sd, std::sqrt(0.0916 - 0.09 * 0.09 / 0.0916));
  EXPECT_EQ(e.distance, 0);
}

// nugget 0.13 > 0.05: own^2 = 0.0169 - 0.0025 is the call's on every GPU and shared with its row,
// 0.09 + 0.0144 = 0.1044 of 0.1069.
TEST(ResidualTable, WhatACallDeviatesByItselfHoldsAtItsRow) {
  const ResidualEstimate e = table({{at(5), 0.2}}).estimate(at(5), {0.3, 2, 0.13});
  EXPECT_NEAR(e.mean, 0.2 * 0.1044 / 0.1069, 1e-12);
  EXPECT_NEAR(e.sd, std::sqrt(0.1069 - 0.1044 * 0.1044 / 0.1069), 1e-12);
}

// A row two lengths away: 0.09 exp(-2) of it is shared, and nothing of `own`.
TEST(ResidualTable, OneRowAtADistance) {
  const double shared = 0.09 * std::exp(-2.0);
  const ResidualEstimate e = table({{at(1), 0.2}}).estimate(at(5), kKriging);
  EXPECT_DOUBLE_EQ(e.mean, 0.2 * shared / 0.0916);
  EXPECT_DOUBLE_EQ(e.sd, std::sqrt(0.0916 - shared * shared / 0.0916));
  EXPECT_EQ(e.distance, 4);
}

// Rows 2 to the left and 2 to the right, 4 apart: by symmetry both have the weight w of
// w (0.0916 + 0.09 exp(-2)) = 0.09 exp(-1).
TEST(ResidualTable, BetweenTwoRows) {
  const double weight = 0.09 * std::exp(-1.0) / (0.0916 + 0.09 * std::exp(-2.0));
  const ResidualEstimate e = table({{at(3), 0.1}, {at(7), 0.4}}).estimate(at(5), kKriging);
  EXPECT_NEAR(e.mean, weight * 0.5, 1e-12);
  EXPECT_NEAR(e.sd, std::sqrt(0.0916 - 2 * weight * 0.09 * std::exp(-1.0)), 1e-12);
}

// Two rows of one call, from two cards: their mean counts 2 x 0.09 / (2 x 0.09 + 0.0016) times.
TEST(ResidualTable, TwoRowsOfOneCall) {
  const ResidualEstimate e = table({{at(5), 0.1}, {at(5), 0.3}}).estimate(at(5), kKriging);
  EXPECT_NEAR(e.mean, 0.2 * 0.18 / 0.1816, 1e-12);
}

TEST(ResidualTable, FarFromEveryRowTheFormulaAlone) {
  const ResidualEstimate e = table({{at(0), 0.5}}).estimate(at(200), kKriging);
  EXPECT_NEAR(e.mean, 0, 1e-12);
  EXPECT_NEAR(e.sd, std::hypot(0.3, 0.04), 1e-12);
}

TEST(ResidualTable, GroupsNeverMix) {
  const ResidualTable both = table({{at(5, 7), 0.5}, {at(5, 3), -0.2}});
  EXPECT_DOUBLE_EQ(both.estimate(at(5, 3), kKriging).mean, -0.2 * 0.09 / 0.0916);
  const ResidualEstimate other = both.estimate(at(5, 4), kKriging);
  EXPECT_EQ(other.mean, 0);
  EXPECT_EQ(other.sd, std::hypot(0.3, 0.04));
  EXPECT_TRUE(std::isinf(other.distance));
}

TEST(ResidualTable, ARowLeftOutDoesNotTell) {
  const ResidualTable both = table({{at(5), 0.5}, {at(6), 0.1}});
  EXPECT_EQ(both.estimate(at(5), kKriging, 0).mean, table({{at(6), 0.1}}).estimate(at(5), kKriging).mean);
}

// Rows are sorted by group; what they are rows of goes with them.
TEST(ResidualTable, KeepsTheOrderWithinAGroup) {
  const ResidualTable t = table({{at(1, 2), 0.1, 0}, {at(2, 1), 0.2, 1}, {at(3, 2), 0.3, 2}});
  EXPECT_EQ(t.rows()[0].call, 1);
  EXPECT_EQ(t.rows()[1].call, 0);
  EXPECT_EQ(t.rows()[2].call, 2);
}

// No spread is below what one call differs by from itself on the next card.
TEST(ResidualTable, NoSurerThanARepeat) {
  std::vector<ResidualRow> rows;
  for (int i = 0; i < 12; ++i) rows.push_back({at(5), 0.2});
  EXPECT_GE(table(rows).estimate(at(5), {0.3, 2, 0.2}).sd, 0.05);
}

TEST(Distance, OverTheCoordinatesOfTheGroup) { EXPECT_EQ(distance({0, 2, {0, 0, 9}}, {0, 2, {3, 4, 1}}), 5); }

}  // namespace
}  // namespace tbdsim
