// Numbers that a network computes once, told from trained ones; masks of what comes after.
#include "simulate/import/onnx_tables.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace tbdsim {
namespace {

using Dims = std::vector<std::int64_t>;

// 5 positions of 4 features: sin p, cos p, sin p/10, cos p/10.
std::vector<float> positions() {
  std::vector<float> table;
  for (int p = 0; p < 5; ++p) {
    for (const double f : {1.0, 0.1}) {
      table.push_back(static_cast<float>(std::sin(p * f)));
      table.push_back(static_cast<float>(std::cos(p * f)));
    }
  }
  return table;
}

TEST(OnnxTables, SinesOfPositionsAreComputed) {
  std::vector<float> table = positions();
  EXPECT_TRUE(is_computed_table({5, 4}, table));
  EXPECT_TRUE(is_computed_table({1, 5, 4}, table));
  table[9] += 0.01F;  // a trained table starts from them and moves
  EXPECT_FALSE(is_computed_table({5, 4}, table));
}

TEST(OnnxTables, FrequenciesAreComputed) {
  const std::vector<float> frequencies = {1, 0.1F, 0.01F, 0.001F};
  EXPECT_TRUE(is_computed_table({4}, frequencies));
  EXPECT_FALSE(is_computed_table({4}, std::vector<float>{1, 0.1F, 0.02F, 0.001F}));
  EXPECT_FALSE(is_computed_table({4}, std::vector<float>{1, 1, 1, 1}));  // the scale of a fresh norm
}

TEST(OnnxTables, MasksAreComputed) {
  EXPECT_TRUE(is_computed_table({2, 2}, std::vector<float>{0, -100, -100, 0}));
  EXPECT_TRUE(is_computed_table({2, 2}, std::vector<float>{0, -INFINITY, 0, 0}));
  EXPECT_FALSE(is_computed_table({2, 2}, std::vector<float>{0, 0, 0, 0}));
  EXPECT_FALSE(is_computed_table({2, 2}, std::vector<float>{0, -1, -1, 0}));
  EXPECT_FALSE(is_computed_table({2, 2}, std::vector<float>{0, -100, -200, 0}));
  EXPECT_FALSE(is_computed_table({2, 2}, std::vector<float>{0, NAN, NAN, 0}));
}

// Row and column of a 3 x 3 grid.
TEST(OnnxTables, CoordinatesAreComputed) {
  const std::vector<float> grid = {-1, -1, -1, 0, -1, 1, 0, -1, 0, 0, 0, 1, 1, -1, 1, 0, 1, 1};
  EXPECT_TRUE(is_computed_table({1, 3, 3, 2}, grid));
  std::vector<float> other = grid;
  other[4] = 0.5F;
  EXPECT_FALSE(is_computed_table({1, 3, 3, 2}, other));
  EXPECT_FALSE(is_computed_table({3, 3, 2}, std::vector<float>(18, 1)));
}

TEST(OnnxTables, SidesThatAreNotThoseOfTheNumbersAreNone) {
  EXPECT_FALSE(is_computed_table({}, std::vector<float>{1}));
  EXPECT_FALSE(is_computed_table({0}, std::vector<float>{}));
  EXPECT_FALSE(is_computed_table({4, 4}, std::vector<float>{0, -100}));
  EXPECT_FALSE(
      is_computed_table({std::int64_t{1} << 40, std::int64_t{1} << 40}, std::vector<float>{0, -100}));
  EXPECT_FALSE(
      is_lower_triangle({std::int64_t{1} << 40, std::int64_t{1} << 40}, std::vector<float>{0, -100}));
}

// A tensor without bytes, and one that does not lie at an address of its numbers.
TEST(OnnxTables, NumbersAreReadWhereTheyLie) {
  const StoredNumbers<float> none{std::string_view()};
  EXPECT_EQ(none.size(), 0u);
  EXPECT_FALSE(is_computed_table({4, 4}, none));
  EXPECT_FALSE(is_lower_triangle({4, 4}, none));
  const std::vector<float> mask = {0, -100, 0, 0};
  const std::string bytes =
      "x" + std::string(reinterpret_cast<const char*>(mask.data()), 4 * sizeof(float)) + "yz";
  const StoredNumbers<float> stored{std::string_view(bytes).substr(1)};
  EXPECT_EQ(stored.size(), 4u);
  EXPECT_EQ(stored[1], -100);
  EXPECT_TRUE(is_computed_table({2, 2}, stored));
  EXPECT_TRUE(is_lower_triangle({2, 2}, stored));
}

TEST(OnnxTables, ALowerTriangleHidesWhatComesAfter) {
  const std::vector<float> mask = {0, -9e9F, -9e9F, 0, 0, -9e9F, 0, 0, 0};
  EXPECT_TRUE(is_lower_triangle({1, 1, 3, 3}, mask));
  EXPECT_TRUE(is_lower_triangle({2, 2}, std::vector<std::uint8_t>{1, 0, 1, 1}));
  EXPECT_FALSE(is_lower_triangle({2, 2}, std::vector<std::uint8_t>{1, 0, 0, 1}));
  EXPECT_FALSE(is_lower_triangle({2, 2}, std::vector<std::uint8_t>{1, 1, 1, 1}));
  EXPECT_FALSE(is_lower_triangle({3, 2}, std::vector<std::uint8_t>{1, 0, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace tbdsim
