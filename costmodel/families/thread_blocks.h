// A grid of thread blocks, each of which sums one tile of results: the core of GEMMs and convolutions.
//
//   waves      = ceil(blocks / SMs)
//   hidden     = sqrt((1 + (h / o)^2) / (1 + (h / q)^2)): the part of memory latency that is hidden with q blocks on an
//                SM; 1 with as many as fit (o);  q = min(waves, o), o = clamp(32768 / area, 1, 16),
//                h = latency * 16384 / area
//   small      = small_tile^-log2(16384 / area): a smaller tile's time over its share of the largest one's time
//   operations = waves * 2 * area * (depth + prologue) * SMs * small / hidden * relief
//   relief     = power_relief(hidden * blocks / (waves * SMs)): where power limits the clock, SMs that idle or wait
//                leave theirs to the others
//   seconds    = operations / (peak * clock * efficiency)
//
// area: results of a block; depth: multiply-adds for each; latency (blocks), prologue (steps of the depth),
// small_tile and efficiency: fitted parameters; peak: operations a second; clock: sustained share of it.
//
// On tensor cores start-up, latency and the stalls of small tiles take a number of clocks that does not
// depend on how fast the SM multiplies. On a GPU that multiplies at a share of its generation's full rate
// (hardware.h, rate_share) prologue, h and small - 1 are therefore of that share. Measured in GEMMs of bf16
// with cuBLAS 12: 159 steps of prologue on an A100 (2048 operations a clock and SM), 74 on an L40S (1024),
// each fitted alone; with the rule an L40S that was left out is 23 instead of 28 % off. Convolutions were
// timed on full-rate GPUs alone (V100, T4); training runs of GeForce cards ask for the rule there too: timm
// on an RTX 3090 in channels_last 16.8 -> 12.0 % (median of rows that are judged as a group; NCHW 5.5
// -> 5.9), PyTorch on RTX 2080 Ti and 4090 5.4 -> 3.2 and 11.6 -> 10.2 %.
//
// Waves and tiles: Kerr et al., "CUTLASS", NVIDIA developer blog, 2017.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "costmodel/families/kernel_time.h"

namespace tbdsim {

struct BlockGrid {
  double blocks = 1;
  double area = 16384;  // results of a block: 128 x 128, or halved up to four times
  double depth = 1;     // multiply-adds for each of them
};

using Tile = std::pair<std::uint16_t, std::uint16_t>;  // rows, columns

// Calls each(tile) for every tile, unrolled: a tile's sizes are then constants, and divisions by them are
// multiplications.
template <std::size_t N, class Each>
[[gnu::always_inline]] inline void for_each_tile(const Tile (&tiles)[N], Each each) {
  [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) { (each(tiles[I]), ...); }
  (std::make_index_sequence<N>{});
}

template <class T>
struct BlockRates {
  T small_tile;      // share of the rate that is kept when the area is halved
  T latency;         // blocks missing to hide latency, of a tile of 128 x 128
  T prologue;        // start and end of a block, in steps of the depth
  double share = 1;  // of the generation's full rate
};

inline constexpr double kMaxTileArea = 16384;  // 128 x 128

// ceil(x) for 0 <= x < 2^52, branch-free: adding 2^52 rounds to an integer. std::ceil is a library call
// without SSE4.1, with which a formula takes three times as long.
[[nodiscard]] inline double ceil_nonneg(double x) {
  constexpr double kNoFraction = 0x1p52;
  const double nearest = (x + kNoFraction) - kNoFraction;
  return nearest + (nearest < x ? 1.0 : 0.0);
}

// Blocks that an SM holds at once.
inline constexpr std::size_t kMaxResident = 16;
[[nodiscard]] inline double resident_blocks(double area) {
  return std::clamp(2 * kMaxTileArea / area, 1.0, static_cast<double>(kMaxResident));
}

// log2(kMaxTileArea / area), 0 to 4 for tiles of 128 x 128 to 32 x 32: the exponent in the bits of a double.
inline constexpr std::size_t kTileAreas = 5;
[[nodiscard]] inline std::size_t log2_area_ratio(double area) {
  return (std::bit_cast<std::uint64_t>(kMaxTileArea / area) >> 52U) - 1'023;
}

// Share of a board's power that does not follow the clock of tensor cores: hardware.h, power_share.
inline constexpr double kPowerBesideClock = 0.15;

// Time of SMs that are busy for a share of it, over the time at the clock that power leaves them under full
// load. Tensor cores (exponent 1/3): a board whose full load has the clock s has W = 0.15 + 0.85 s^3 of the
// power that the whole clock needs, and W / busy for its busy SMs.
template <class T>
[[nodiscard]] T power_relief(const PowerLimit& power, const T& busy) {
  using std::pow;
  const double s = power.clock_share;
  if (power.exponent == 1) return std::max<T>(busy, T(s));
  constexpr double kFollows = 1 - kPowerBesideClock;
  const double watts = kPowerBesideClock + kFollows * s * s * s;
  const T clock = pow((watts / std::min<T>(busy, T(1.0)) - kPowerBesideClock) / kFollows, power.exponent);
  return std::max<T>(s / clock, T(s));
}

// Work of grids on one GPU, in operations that take the GPU as long at the rate of full tiles of 128 x 128.
template <class T>
class GridWork {
 public:
  GridWork(double sm_count, const BlockRates<T>& rates, const PowerLimit& power = {})
      : sm_count_(sm_count),
        power_(power),
        latency_(rates.share * rates.latency),
        prologue_(rates.share * rates.prologue) {
    T kept(1.0);
    for (T& small : small_) {
      small = (1 - rates.share) + rates.share / kept;
      kept = kept * rates.small_tile;
    }
  }

  [[nodiscard, gnu::always_inline]] T operations(const BlockGrid& grid) const {
    const double waves = ceil_nonneg(grid.blocks / sm_count_);
    const double queued = std::min(waves, resident_blocks(grid.area));
    const T latency = latency_factor(grid.area, queued);
    T operations = waves * (2 * grid.area * sm_count_) * (grid.depth + prologue_) * latency;
    if (power_.clock_share < 1) {
      const T hidden = small_[log2_area_ratio(grid.area)] / latency;
      operations = operations * power_relief(power_, T(hidden * (grid.blocks / (waves * sm_count_))));
    }
    return operations;
  }

 private:
  friend class GridWorkTable;  // fast/grid_work_table.h

  // small / hidden with `queued` blocks on an SM.
  [[nodiscard, gnu::always_inline]] T latency_factor(double area, double queued) const {
    using std::sqrt;
    const double resident = resident_blocks(area);
    const T& small = small_[log2_area_ratio(area)];
    if (queued == resident) return small;
    const T gap = latency_ * (kMaxTileArea / area);
    const T exposed = sqrt((queued * queued + gap * gap) / (resident * resident + gap * gap));
    return small * (resident / queued) * exposed;
  }

  double sm_count_;
  PowerLimit power_;
  T latency_, prologue_;
  std::array<T, kTileAreas> small_;  // by log2_area_ratio
};

// The fastest of choices that differ in their operations alone; of equals the first.
struct LeastWork {
  double operations = std::numeric_limits<double>::infinity();
  Choice choice;

  [[gnu::always_inline]] void keep_less(double others, const Choice& other) {
    if (others < operations) *this = {others, other};
  }
};

}  // namespace tbdsim
