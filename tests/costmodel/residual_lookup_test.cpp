// A lookup says what its table says: on lattices, where distances tie, and between their points.
#include "costmodel/residuals/fast/residual_lookup.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

constexpr double kNowhere = std::numeric_limits<double>::infinity();
constexpr Kriging kKriging{.amplitude = 0.3, .length = 2, .nugget = 0.13, .repeat = 0.05};

// `side`^2 rows of a group, on a lattice a little uneven.
void add_lattice(int side, std::uint64_t group, std::vector<ResidualRow>& rows) {
  for (int i = 0; i < side * side; ++i) {
    const double x = i % side, y = 1.1 * (i / side);
    rows.push_back({{group, 2, {x, y}}, 0.1 * std::sin(3 * x + y), i});
  }
}

ResidualTable lattices() {
  std::vector<ResidualRow> rows;
  add_lattice(9, 7, rows);  // more rows than are looked at at once
  add_lattice(3, 2, rows);  // fewer than count
  add_lattice(5, 4, rows);
  return ResidualTable(std::move(rows));
}

ResidualEstimate estimate(const ResidualLookup& lookup, const Features& at, std::size_t query = 0) {
  const ResidualLookup::Group* group = lookup.find(at.group);
  return group == nullptr ? ResidualEstimate{0, lookup.sd_alone(), kNowhere}
                          : lookup.estimate(*group, at, query);
}

// To six digits: in single precision.
void expect_same(const ResidualEstimate& found, const ResidualEstimate& expected) {
  constexpr double kSixDigits = 1e-6;
  EXPECT_NEAR(found.mean, expected.mean, kSixDigits);
  EXPECT_NEAR(found.sd, expected.sd, kSixDigits);
  if (std::isinf(expected.distance)) {
    EXPECT_EQ(found.distance, expected.distance);
  } else {
    EXPECT_NEAR(found.distance, expected.distance, kSixDigits);
  }
}

TEST(ResidualLookup, SaysWhatTheTableSays) {
  const ResidualTable table = lattices();
  const ResidualLookup lookup(table, kKriging);
  for (const std::uint64_t group : {1U, 2U, 4U, 7U, 9U}) {
    for (double x = -3; x < 12; x += 0.5) {
      const Features at{group, 2, {x, 0.37 * x + 1}};
      const ResidualEstimate expected = table.estimate(at, kKriging);
      const ResidualEstimate found = estimate(lookup, at);
      expect_same(found, expected);
    }
  }
}

// Several tables, groups with and without rows, queries that jump about: what was asked before is of no
// matter.
TEST(ResidualLookup, WhateverWasAskedBefore) {
  const ResidualTable table = lattices();
  const Kriging wide{.amplitude = 0.1, .length = 5};
  const ResidualLookup one(table, kKriging), other(table, wide);
  for (int i = 0; i < 5'000; ++i) {
    const bool is_other = i % 3 == 0;
    const Features at{static_cast<std::uint64_t>(i % 8), 2, {0.3017 * (i % 37), 5 - 0.2039 * (i % 41)}};
    const ResidualEstimate expected = table.estimate(at, is_other ? wide : kKriging);
    const ResidualEstimate found = estimate(is_other ? other : one, at, static_cast<std::size_t>(i % 5));
    expect_same(found, expected);
    ASSERT_FALSE(HasFailure()) << i;
  }
}

// Queries whose calls differ in their batch, at batches that jump about: along the lattice, where rows tie,
// and slanting; of each 300 places, so that most lie between others that were asked for.
TEST(ResidualLookup, AlongALine) {
  const ResidualTable table = lattices();
  const ResidualLookup lookup(table, kKriging);
  constexpr double kSlopes[] = {0, 0.37, 1.1};
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t query = static_cast<std::size_t>(i) % 6;
    const double x = -2 + 0.04 * (i * 7 % 300), y = 2.013 + kSlopes[query / 2] * x;
    const Features at{7, 2, {query % 2 == 0 ? x : y, query % 2 == 0 ? y : x}};
    const ResidualEstimate expected = table.estimate(at, kKriging);
    const ResidualEstimate found = estimate(lookup, at, query);
    expect_same(found, expected);
    ASSERT_FALSE(HasFailure()) << i;
  }
}

// A first point of a query, the same again, one just beside it, and ties find what a new lookup finds.
TEST(ResidualLookup, OfOnePointAgainAndAgain) {
  const ResidualTable table = lattices();
  const ResidualLookup lookup(table, kKriging);
  for (const double x : {0.3, 0.3 + 1e-7, 2.0, 4.0, 2.0 - 1e-7, 2.0, 0.3, 3.0, 2.0, 4.0}) {
    for (int again = 0; again < 3; ++again) {
      const Features at{7, 2, {x, 2.2}};
      const ResidualEstimate found = estimate(lookup, at, 1);
      const ResidualEstimate anew = estimate(ResidualLookup(table, kKriging), at);
      EXPECT_EQ(found.mean, anew.mean);
      EXPECT_EQ(found.sd, anew.sd);
      EXPECT_EQ(found.distance, anew.distance);
    }
  }
}

TEST(ResidualLookup, WhereNoRowTells) {
  const ResidualTable table = lattices();
  const ResidualLookup lookup(table, kKriging);
  EXPECT_NE(lookup.find(4), nullptr);
  EXPECT_EQ(lookup.find(3), nullptr);
  EXPECT_DOUBLE_EQ(lookup.sd_alone(), std::hypot(0.3, 0.13));
}

}  // namespace
}  // namespace tbdsim
