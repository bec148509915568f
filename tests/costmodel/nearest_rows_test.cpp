// The boxes of a group find the rows that going through all of them finds.
#include "costmodel/residuals/fast/nearest_rows.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

double square_of_distance(const Features& a, const Features& b) {
  double sum = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(a.count); ++c)
    sum += (a.x[c] - b.x[c]) * (a.x[c] - b.x[c]);
  return sum;
}

// Of equally far rows the first; further rows, where there are too few, are infinitely far.
struct Expected {
  NearestRows nearest;
  double farthest;  // square of these
};
Expected by_going_through_all(const std::vector<Features>& rows, const Features& at) {
  std::vector<std::pair<double, int>> all;
  for (const Features& row : rows)
    all.emplace_back(square_of_distance(row, at), static_cast<int>(all.size()));
  while (all.size() <= NearestRows::kMost) all.emplace_back(kFar, static_cast<int>(all.size()));
  std::sort(all.begin(), all.end());
  NearestRows nearest{.rows = {}, .further = all[NearestRows::kMost].first};
  for (std::size_t i = 0; i < NearestRows::kMost; ++i) nearest.rows[i] = all[i].second;
  std::sort(nearest.rows.begin(), nearest.rows.end());
  return {nearest, all[NearestRows::kMost - 1].first};
}

// A lattice, where distances tie; each of its points twice from `twice` rows on.
std::vector<Features> lattice(int count, int twice) {
  std::vector<Features> rows;
  for (int i = 0; i < count; ++i) {
    const int at = i < twice ? i : i - twice;
    rows.push_back({1, 3, {static_cast<double>(at % 5), static_cast<double>(at / 5 % 4), 0.5 * (at / 20)}});
  }
  return rows;
}

TEST(NearestRows, AreThoseOfAllRows) {
  for (const int count : {1, 5, 11, 12, 13, 31, 32, 33, 64, 65, 200, 1'000}) {
    SCOPED_TRACE(count);
    const std::vector<Features> rows = lattice(count, count * 3 / 4);
    const RowBoxes boxes(rows);
    for (double x = -4; x < 9; x += 0.5) {
      const Features at{1, 3, {x, 2 - x / 3, 0.25 * x}};
      const auto [expected, farthest] = by_going_through_all(rows, at);
      for (const double within : {kFar, farthest + 1, farthest}) {
        const NearestRows found = boxes.nearest(at, within);
        EXPECT_EQ(found.rows, expected.rows) << x;
        EXPECT_LE(found.further, expected.further) << x;
        EXPECT_GE(found.further, farthest) << x;
      }
    }
  }
}

// As one call measured again and again.
TEST(NearestRows, WhereAllAreOnePoint) {
  const std::vector<Features> rows(100, {1, 2, {3, 4}});
  const NearestRows found = RowBoxes(rows).nearest({1, 2, {3, 5}});
  EXPECT_EQ(found.further, 1);
  for (std::size_t i = 0; i < NearestRows::kMost; ++i) EXPECT_EQ(found.rows[i], static_cast<int>(i));
}

}  // namespace
}  // namespace tbdsim
