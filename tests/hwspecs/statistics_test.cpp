#include "hwspecs/base/statistics.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

TEST(Quantile, InterpolatesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.5), 2.5);  // position 1.5
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.9), 3.7);  // position 2.7
  EXPECT_DOUBLE_EQ(quantile({1, 2, 10}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 10}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 10}, 1), 10);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
}

TEST(Median, IsOfValuesInAnyOrder) {
  EXPECT_DOUBLE_EQ(median({10, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace tbdsim
