// A lookup says what its table says: on lattices, where distances tie, and between their points.
#include "costmodel/residual_lookup.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

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

TEST(ResidualLookup, SaysWhatTheTableSays) {
  const ResidualTable table = lattices();
  const ResidualLookup lookup(table, kKriging);
  for (const std::uint64_t group : {1, 2, 4, 7, 9}) {
    for (double x = -3; x < 12; x += 0.5) {
      const Features at{group, 2, {x, 0.37 * x + 1}};
      const ResidualEstimate expected = table.estimate(at, kKriging);
      const ResidualEstimate found = lookup.estimate(at);
      EXPECT_NEAR(found.mean, expected.mean, 1e-13);
      EXPECT_NEAR(found.sd, expected.sd, 1e-13);
      EXPECT_EQ(found.distance, expected.distance);
    }
  }
}

// Several tables, groups with and without rows: each query is answered as if it were asked alone.
TEST(ResidualLookup, ManyAtOnce) {
  const ResidualTable table = lattices();
  const ResidualLookup one(table, kKriging), other(table, {.amplitude = 0.1, .length = 5});
  std::vector<ResidualLookup::Query> queries;
  for (int i = 0; i < 23; ++i) {
    const auto group = static_cast<std::uint64_t>(i % 8);
    queries.push_back({i % 3 == 0 ? &other : &one, {group, 2, {0.3 * i, 5 - 0.2 * i}}});
  }
  std::vector<ResidualEstimate> found(queries.size());
  ResidualLookup::estimate(queries, found);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const ResidualEstimate alone = queries[i].lookup->estimate(queries[i].at);
    EXPECT_EQ(found[i].mean, alone.mean) << i;
    EXPECT_EQ(found[i].sd, alone.sd) << i;
    EXPECT_EQ(found[i].distance, alone.distance) << i;
  }
}

TEST(ResidualLookup, WhereNoRowTells) {
  const ResidualTable table = lattices();
  const ResidualLookup lookup(table, kKriging);
  EXPECT_DOUBLE_EQ(lookup.sd_alone(), std::hypot(0.3, 0.13));
  EXPECT_EQ(lookup.estimate({3, 2, {1, 1}}).sd, lookup.sd_alone());
  EXPECT_TRUE(std::isinf(lookup.estimate({3, 2, {1, 1}}).distance));
}

}  // namespace
}  // namespace tbdsim
