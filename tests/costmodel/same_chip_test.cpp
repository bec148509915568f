// Boards that are sold with the same chip.
#include "costmodel/profile/same_chip.h"

#include <gtest/gtest.h>

#include "tests/costmodel/small_gpu.h"

namespace tbdsim {
namespace {

TEST(SameChip, AsManyOfTheSameSMs) {
  GpuSpec board = test::small_gpu();
  board.tdp = Watts(250);
  GpuSpec other = board;
  other.name = "other";
  EXPECT_TRUE(have_same_chip(board, other));
  other.sm_count = board.sm_count + 1;
  EXPECT_FALSE(have_same_chip(board, other));
  other = board;
  other.compute_capability = board.compute_capability + 0.1;
  EXPECT_FALSE(have_same_chip(board, other));
}

// 250 W beside 130 and 120.
TEST(SameChip, NotWithHalfThePower) {
  GpuSpec board = test::small_gpu(), other = board;
  board.tdp = Watts(250);
  other.tdp = Watts(130);
  EXPECT_TRUE(have_same_chip(board, other));
  EXPECT_TRUE(have_same_chip(other, board));
  other.tdp = Watts(120);
  EXPECT_FALSE(have_same_chip(board, other));
  EXPECT_FALSE(have_same_chip(other, board));
}

// ln 2 for half the bandwidth, ln 1.25 for a fifth less power.
TEST(SameChip, DistanceOfBandwidthAndPower) {
  GpuSpec board = test::small_gpu(), other = board;
  board.tdp = Watts(250);
  other.tdp = Watts(200);
  other.memory_bandwidth = board.memory_bandwidth * 0.5;
  EXPECT_NEAR(distance_between_boards(board, other), 0.693147 + 0.223144, 1e-6);
  EXPECT_EQ(distance_between_boards(board, board), 0);
}

}  // namespace
}  // namespace tbdsim
