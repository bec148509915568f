// GridWork<double> with the terms that depend on a tile's area and on the blocks on an SM in a table.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "costmodel/families/thread_blocks.h"

namespace tbdsim {

// The same numbers as GridWork<double>::operations. It saves a square root and two divisions for each tile
// and split of a GEMM or convolution: without it predictions of ResNet-50 take 6 to 12 % longer.
class GridWorkTable {
 public:
  explicit GridWorkTable(const GridWork<double>& work)
      : sm_count_(work.sm_count_), prologue_(work.prologue_), power_(work.power_) {
    for (std::size_t ratio = 0; ratio < kTileAreas; ++ratio) {
      const double area = kMaxTileArea / static_cast<double>(1U << ratio);
      hidden_wave_[ratio] = 2 * area * work.sm_count_ * work.small_[ratio];
      for (std::size_t queued = 1; static_cast<double>(queued) <= resident_blocks(area); ++queued)
        wave_[ratio][queued] =
            2 * area * work.sm_count_ * work.latency_factor(area, static_cast<double>(queued));
    }
  }

  [[nodiscard, gnu::always_inline]] double operations(const BlockGrid& grid) const {
    const double waves = ceil_nonneg(grid.blocks / sm_count_);
    // double -> int converts in one instruction; double -> unsigned does not.
    const auto queued = static_cast<int>(std::min(waves, resident_blocks(grid.area)));
    const std::size_t ratio = log2_area_ratio(grid.area);
    const double wave = wave_[ratio][static_cast<std::size_t>(queued)];
    double operations = waves * (grid.depth + prologue_) * wave;
    if (power_.clock_share < 1) {
      const double hidden = hidden_wave_[ratio] / wave;
      operations *= power_relief(power_, hidden * (grid.blocks / (waves * sm_count_)));
    }
    return operations;
  }

 private:
  double sm_count_, prologue_;
  PowerLimit power_;
  std::array<double, kTileAreas> hidden_wave_{};  // as wave_, all latency hidden
  // Operations of a wave that is one step deep, by log2_area_ratio and blocks on an SM.
  std::array<std::array<double, kMaxResident + 1>, kTileAreas> wave_{};
};

}  // namespace tbdsim
