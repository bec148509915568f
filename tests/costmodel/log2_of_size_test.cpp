#include "costmodel/residuals/log2_of_size.h"

#include <limits>

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

TEST(Log2OfSize, OfSmallWholeNumbersFromTheTable) {
  EXPECT_EQ(log2_of_size(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(log2_of_size(1), 0);
  EXPECT_EQ(log2_of_size(1024), 10);
  for (std::size_t size = 1; size < kSmallSizes; ++size) {
    const auto x = static_cast<double>(size);
    EXPECT_DOUBLE_EQ(log2_of_size(x), std::log2(x)) << size;
  }
}

TEST(Log2OfSize, OfOtherNumbers) {
  EXPECT_EQ(log2_of_size(0.5), -1);
  EXPECT_EQ(log2_of_size(1.5), std::log2(1.5));
  EXPECT_EQ(log2_of_size(4096), 12);
  EXPECT_EQ(log2_of_size(0x1p40), 40);
}

}  // namespace
}  // namespace tbdsim
