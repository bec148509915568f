// A grid of thread blocks, each of which sums one tile of results: the core of matrix products and
// convolutions.
//
//   waves   = ceil(blocks / SMs)
//   hidden  = sqrt((1 + (h / o)^2) / (1 + (h / q)^2)): memory latency with q blocks on an SM, 1 with as many
//             as fit (o);  q = min(waves, o), o = clamp(32768 / area, 1, 16), h = latency 16384 / area
//   small   = small_tile^-log2(16384 / area): a smaller tile's time over its share of the largest one's time
//   work    = waves 2 area (depth + prologue) SMs small / hidden
//   seconds = work / (peak  clock  efficiency)
//
// In products start-up, latency and what small tiles wait for take clocks, however fast the SM multiplies
// meanwhile. So on a card that multiplies at a share of its generation's full rate (hardware.h, rate_share)
// prologue, h and small - 1 are of that share. Measured in bf16 with cuBLAS 12: 159 steps of prologue on an
// A100 (2048 operations a clock and SM), 74 on an L40S (1024), each fitted alone; with the rule an L40S that
// was left out is 23 instead of 28 % off. Of convolutions no such card was measured, and runs on GeForce
// cards agree neither with it nor without.
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
  double area = 16384;  // results of a block: 128 x 128, or halved some times
  double depth = 1;     // multiply-adds for each of them
};

using Tile = std::pair<std::uint16_t, std::uint16_t>;  // rows, columns

// A copy of `each` for every tile, in which the tile's numbers are constants: what divides by them
// multiplies.
template <std::size_t N, class Each>
[[gnu::always_inline]] inline void for_each_tile(const Tile (&tiles)[N], Each each) {
  [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) { (each(tiles[I]), ...); }
  (std::make_index_sequence<N>{});
}

template <class T>
struct BlockRates {
  T small_tile;      // of the rate that is kept when the area is halved
  T latency;         // blocks missing to hide latency, of a tile of 128 x 128
  T prologue;        // start and end of a block, in steps of the depth
  double share = 1;  // of the generation's full rate
};

inline constexpr double kWholeTile = 16384;  // 128 x 128

// ceil of what is not negative. Inline: std::ceil is a call into a library, with which a formula takes three
// times as long. Without a branch, which nobody could foresee.
[[nodiscard]] inline double whole_up(double x) {
  constexpr double kNoFraction = 0x1p52;
  const double nearest = (x + kNoFraction) - kNoFraction;
  return nearest + (nearest < x ? 1.0 : 0.0);
}

// Blocks that an SM holds at once.
inline constexpr std::size_t kMostResident = 16;
[[nodiscard]] inline double resident_blocks(double area) {
  return std::clamp(2 * kWholeTile / area, 1.0, static_cast<double>(kMostResident));
}

// How often the largest tile is halved, down to 32 x 32: what is in the exponent of a number.
inline constexpr std::size_t kTileSizes = 5;
[[nodiscard]] inline std::size_t halvings(double area) {
  return (std::bit_cast<std::uint64_t>(kWholeTile / area) >> 52U) - 1'023;
}

// Operations that take the card as long at the rate of a tile of 128 x 128. What grids share is worked out
// once.
template <class T>
class BlockWork {
 public:
  BlockWork(double sm_count, const BlockRates<T>& rates)
      : sm_count_(sm_count), latency_(rates.share * rates.latency), prologue_(rates.share * rates.prologue) {
    T kept(1.0);
    for (T& small : small_) {
      small = (1 - rates.share) + rates.share / kept;
      kept = kept * rates.small_tile;
    }
  }

  [[nodiscard, gnu::always_inline]] T of(const BlockGrid& grid) const {
    const double waves = whole_up(grid.blocks / sm_count_);
    const double queued = std::min(waves, resident_blocks(grid.area));
    return waves * (2 * grid.area * sm_count_) * (grid.depth + prologue_) * slowness(grid.area, queued);
  }

 private:
  friend class BlockTable;

  // small / hidden, with so many blocks on an SM.
  [[nodiscard, gnu::always_inline]] T slowness(double area, double queued) const {
    using std::sqrt;
    const double resident = resident_blocks(area);
    const T& small = small_[halvings(area)];
    if (queued == resident) return small;
    const T gap = latency_ * (kWholeTile / area);
    const T exposed = sqrt((queued * queued + gap * gap) / (resident * resident + gap * gap));
    return small * (resident / queued) * exposed;
  }

  double sm_count_;
  T latency_, prologue_;
  std::array<T, kTileSizes> small_;  // by halvings
};

// The same, of many grids: what depends on the tile and blocks on an SM is in a table.
class BlockTable {
 public:
  explicit BlockTable(const BlockWork<double>& work) : sm_count_(work.sm_count_), prologue_(work.prologue_) {
    for (std::size_t size = 0; size < kTileSizes; ++size) {
      const double area = kWholeTile / static_cast<double>(1U << size);
      for (std::size_t queued = 1; static_cast<double>(queued) <= resident_blocks(area); ++queued)
        wave_[size][queued] = 2 * area * work.sm_count_ * work.slowness(area, static_cast<double>(queued));
    }
  }

  [[nodiscard, gnu::always_inline]] double of(const BlockGrid& grid) const {
    const double waves = whole_up(grid.blocks / sm_count_);
    // An int is sooner made of a double than what has no sign.
    const auto queued = static_cast<int>(std::min(waves, resident_blocks(grid.area)));
    return waves * (grid.depth + prologue_) * wave_[halvings(grid.area)][static_cast<std::size_t>(queued)];
  }

 private:
  double sm_count_, prologue_;
  // Of a wave one step deep, by halvings and blocks on an SM.
  std::array<std::array<double, kMostResident + 1>, kTileSizes> wave_{};
};

// Of choices that differ in work alone the fastest, of equals the first.
struct LeastWork {
  double work = std::numeric_limits<double>::infinity();
  Choice choice;

  [[gnu::always_inline]] void keep_less(double other_work, const Choice& other) {
    if (other_work < work) *this = {other_work, other};
  }
};

}  // namespace tbdsim
