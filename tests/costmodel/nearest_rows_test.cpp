#include "costmodel/residuals/nearest_rows.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

std::vector<ResidualRow> rows_at(const std::vector<double>& places) {
  std::vector<ResidualRow> rows;
  for (const double x : places) rows.push_back({.at = {0, 1, {x}}});
  return rows;
}

// Rows 0, 1, ... 29 shuffled by 7 * i mod 30; nearest to 10.1 are 5 to 16, the next one 4 at a distance
// of 6.1.
TEST(NearestRows, AreTwelveInAscendingOrder) {
  std::vector<double> places;
  for (int i = 0; i < 30; ++i) places.push_back(i * 7 % 30);
  const NearestRows found = nearest_rows(rows_at(places), {0, 1, {10.1}});
  EXPECT_TRUE(std::is_sorted(found.rows.begin(), found.rows.end()));
  std::vector<double> nearest;
  for (const int row : found.rows) nearest.push_back(places[static_cast<std::size_t>(row)]);
  std::sort(nearest.begin(), nearest.end());
  EXPECT_EQ(nearest, (std::vector<double>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  EXPECT_DOUBLE_EQ(found.next_square, 6.1 * 6.1);
}

// One call measured again and again: the first rows.
TEST(NearestRows, OfEquallyFarOnesTheFirst) {
  const NearestRows found = nearest_rows(rows_at(std::vector<double>(40, 3)), {0, 1, {4}});
  for (std::size_t i = 0; i < kMaxNeighbors; ++i) EXPECT_EQ(found.rows[i], static_cast<int>(i));
  EXPECT_EQ(found.next_square, 1);
}

TEST(NearestRows, OfFewerRowsAll) {
  const NearestRows found = nearest_rows(rows_at({7, 5, 6}), {0, 1, {5}});
  for (std::size_t i = 0; i < kMaxNeighbors; ++i) EXPECT_EQ(found.rows[i], static_cast<int>(i));
  EXPECT_EQ(found.next_square, std::numeric_limits<double>::infinity());
}

TEST(NearestRows, WithoutOneThatIsLeftOut) {
  const NearestRows found = nearest_rows(rows_at({7, 5, 6}), {0, 1, {5}}, 1);
  EXPECT_EQ(found.rows[0], 0);
  EXPECT_EQ(found.rows[1], 2);
  EXPECT_EQ(found.rows[2], 3);  // there is no row 3
}

}  // namespace
}  // namespace tbdsim
