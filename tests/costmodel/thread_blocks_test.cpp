// The work of grids of thread blocks: waves, latency, small tiles; from the formula and from its table.
#include "costmodel/families/thread_blocks.h"

#include <cmath>

#include <gtest/gtest.h>

#include "costmodel/families/fast/grid_work_table.h"

namespace tbdsim {
namespace {

// On 2 SMs; from the formula and from its table.
void expect_work(const BlockRates<double>& rates, const BlockGrid& grid, double flop) {
  const GridWork<double> work(2, rates);
  EXPECT_DOUBLE_EQ(work.operations(grid), flop);
  EXPECT_DOUBLE_EQ(GridWorkTable(work).operations(grid), flop);
}

// 5 blocks are 3 waves, each 2 SMs x 2 x 16384 x (90 + 10) flop. An SM is full of blocks: latency is hidden.
TEST(ThreadBlocks, WavesOfWholeTiles) {
  const BlockRates<double> rates{0.9, 1, 10};
  expect_work(rates, {5, 16384, 90}, 3 * 6553600);
  expect_work(rates, {6, 16384, 90}, 3 * 6553600);
}

// A single wave has one block on an SM where two would fit: sqrt((1 + (1/2)^2) / (1 + 1)) of the rate.
// Half the tile has half the work and 0.9 of the efficiency; 4 such blocks fit and 2 blocks are missing:
// sqrt((1 + (2/4)^2) / (1 + 2^2)) of the rate.
TEST(ThreadBlocks, LatencyAndSmallTiles) {
  const BlockRates<double> rates{0.9, 1, 10};
  expect_work(rates, {2, 16384, 90}, 6553600 / std::sqrt(1.25 / 2));
  expect_work(rates, {2, 8192, 90}, 3276800 / 0.9 / std::sqrt(1.25 / 5));
}

// At a quarter of the full rate a quarter of the start-up's steps pass meanwhile, of the latency and of what
// half a tile takes longer: 1 + (1 / 0.9 - 1) / 4; a quarter of 2 / 4 blocks is missing.
TEST(ThreadBlocks, WhatTakesClocksIsLessOfASlowerCard) {
  const BlockRates<double> rates{0.9, 1, 40, 0.25};
  expect_work(rates, {6, 16384, 90}, 3 * 6553600);
  expect_work(rates, {2, 8192, 90}, 3276800 * (0.75 + 0.25 / 0.9) / std::sqrt((1 + 0.015625) / (1 + 0.25)));
}

// All tiles, from one block to more than an SM holds, without a limit of power and with those of small boards
// and of tensor cores.
TEST(ThreadBlocks, ATableSaysWhatTheFormulaSays) {
  for (const PowerLimit& power : {PowerLimit{}, PowerLimit{0.53, 1}, PowerLimit{0.86, 1.0 / 3}}) {
    const GridWork<double> work(28, {0.83, 1.7, 23, 0.6}, power);
    const GridWorkTable table(work);
    for (const double area : {16384, 8192, 4096, 2048, 1024}) {
      for (double blocks = 1; blocks < 28 * 20; ++blocks) {
        const BlockGrid grid{blocks, area, 576};
        ASSERT_DOUBLE_EQ(table.operations(grid), work.operations(grid)) << blocks << " of " << area;
      }
    }
  }
}

}  // namespace
}  // namespace tbdsim
