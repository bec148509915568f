// Cached estimates are those of a search of its own, to the last bit, and those of the double-precision table
// to six digits: on lattices, where distances tie, and between their points.
#include "costmodel/residuals/fast/estimate_cache.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "costmodel/residuals/residual_table.h"

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
  add_lattice(9, 7, rows);
  add_lattice(3, 2, rows);  // fewer rows than kMaxNeighbors
  add_lattice(5, 4, rows);
  return ResidualTable(std::move(rows));
}

class EstimateCacheTest : public testing::Test {
 protected:
  void expect_same(const Features& at, std::size_t kernel, const ResidualIndex& index,
                   const Kriging& kriging) {
    const ResidualIndex::Group* group = index.find(at.group);
    ASSERT_NE(group, nullptr);
    const ResidualEstimate found = cache_.estimate(index, *group, at, kernel);
    const ResidualEstimate alone = index.estimate(*group, at);
    EXPECT_EQ(found.mean, alone.mean);
    EXPECT_EQ(found.sd, alone.sd);
    EXPECT_EQ(found.distance, alone.distance);
    constexpr double kSixDigits = 1e-6;
    const ResidualEstimate exact = table_.estimate(at, kriging);
    EXPECT_NEAR(found.mean, exact.mean, kSixDigits);
    EXPECT_NEAR(found.sd, exact.sd, kSixDigits);
    EXPECT_NEAR(found.distance, exact.distance, kSixDigits * std::max(1.0, exact.distance));
  }

  ResidualTable table_ = lattices();
  ResidualIndex index_{table_, kKriging};
  EstimateCache cache_;
};

// Two indexes, three groups, kernels and points that jump about.
TEST_F(EstimateCacheTest, DoesNotDependOnWhatItHolds) {
  const Kriging wide{.amplitude = 0.1, .length = 5};
  const ResidualIndex other(table_, wide);
  constexpr std::uint64_t kGroups[] = {2, 4, 7};
  for (int i = 0; i < 5'000; ++i) {
    const bool is_other = i % 3 == 0;
    const Features at{kGroups[i % 8 % 3], 2, {0.3017 * (i % 37), 5 - 0.2039 * (i % 41)}};
    expect_same(at, static_cast<std::size_t>(i % 5), is_other ? other : index_, is_other ? wide : kKriging);
    ASSERT_FALSE(HasFailure()) << i;
  }
}

// Kernels whose calls differ in their batch, at batches that jump about: along the lattice, where rows tie,
// and slanting; of each 300 places, so that most lie between others that are cached.
TEST_F(EstimateCacheTest, AlongALine) {
  constexpr double kSlopes[] = {0, 0.37, 1.1};
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t kernel = static_cast<std::size_t>(i) % 6;
    const double x = -2 + 0.04 * (i * 7 % 300), y = 2.013 + kSlopes[kernel / 2] * x;
    expect_same({7, 2, {kernel % 2 == 0 ? x : y, kernel % 2 == 0 ? y : x}}, kernel, index_, kKriging);
    ASSERT_FALSE(HasFailure()) << i;
  }
}

// A first point of a kernel, the same again, one just beside it, and ties.
TEST_F(EstimateCacheTest, TheSamePointAgain) {
  for (const double x : {0.3, 0.3 + 1e-7, 2.0, 4.0, 2.0 - 1e-7, 2.0, 0.3, 3.0, 2.0, 4.0}) {
    for (int again = 0; again < 3; ++again) expect_same({7, 2, {x, 2.2}}, 1, index_, kKriging);
  }
}

// More kernels and neighbor sets than it holds: old ones are evicted.
TEST_F(EstimateCacheTest, WhenItIsFull) {
  for (std::size_t i = 0; i < 3 * EstimateCache::kMaxKernels; ++i) {
    const auto step = static_cast<double>(i);
    const Features at{7, 2, {4 + 5 * std::sin(step), 4 + 5 * std::sin(1.7 * step)}};
    const ResidualIndex::Group& group = *index_.find(7);
    if (i % 97 == 0) {
      expect_same(at, i, index_, kKriging);
    } else {
      EXPECT_TRUE(std::isfinite(cache_.estimate(index_, group, at, i).mean));
    }
    ASSERT_FALSE(HasFailure()) << i;
  }
}

// Another table at the same address, as of a calibration that was freed, has another fingerprint.
TEST_F(EstimateCacheTest, KnowsTablesByTheirContents) {
  expect_same({4, 2, {1, 1}}, 0, index_, kKriging);
  std::vector<ResidualRow> rows = table_.rows();
  for (ResidualRow& row : rows) row.residual += 0.5;
  table_ = ResidualTable(std::move(rows));
  index_ = ResidualIndex(table_, kKriging);
  expect_same({4, 2, {1, 1}}, 0, index_, kKriging);
}

TEST(ResidualIndex, WhereThereAreNoRows) {
  const ResidualTable table = lattices();
  const ResidualIndex index(table, kKriging);
  EXPECT_NE(index.find(4), nullptr);
  EXPECT_EQ(index.find(3), nullptr);
  EXPECT_EQ(index.find(9), nullptr);
  EXPECT_DOUBLE_EQ(index.sd_without_rows(), std::hypot(0.3, 0.13));
}

}  // namespace
}  // namespace tbdsim
