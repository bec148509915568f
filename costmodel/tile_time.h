// A matrix product as a grid of thread blocks, each with a tile of the result: what GemmFamily and
// BatchedGemmFamily share. fp32, tf32, fp16, bf16 and fp8 differ in peak and element size only.
//
//   compute = block_time of thread_blocks.h: ceil(m / tm) ceil(n / tn) batch splits blocks, k / splits deep
//   memory  = miss moved / DRAM rate + (1 - miss) (A + B + C) / L2 rate
//   miss    = 1, or z^2 / (1 + z^2) with z = (A + B + C) / (resident L2) where a call is repeated at once
//   moved   = A + B + C + strided k / (k + 400) (operands with rows along k): 32 bytes of such a row are read
//             at a time, and the longer the rows, the less of an open DRAM page such visits share
//   pages   = reads of the tiles (1 - reach / in use) / page_walk before Volta: rows along k in use by the
//             thread blocks that run at one time, beyond what the TLB reaches (`page_reach` times SMs)
//   time    = launch + sqrt(compute^2 + memory^2 + pages^2) + parts of a split / L2 rate
//   L2 rate = cache  64 bytes per clock and SM  clock
//
// A card that power holds below full clock runs at full clock for a while (`burst`) when a call comes after a
// pause: single calls on an idle stream show it (T4, P4, L4), training does not.
//
// Sources: waves, tiles and splits of k: NVIDIA, "Matrix Multiplication Background User's Guide"; which
// tiles: kernel names and grids of the NeuSight tables (sitar-lab/NeuSight); the other terms are named after
// the mechanism that these tables suggest: no counter was read. page_reach and page_walk start from fits to
// linear layers of a P100 and a P4.
#pragma once

#include <algorithm>

#include "costmodel/call.h"
#include "costmodel/thread_blocks.h"

namespace tbdsim {

enum TileParameter {
  kEfficiency,
  kSmallTile,
  kLatency,
  kPrologue,
  kBandwidth,
  kLaunch,
  kStrided,
  kCache,
  kResident,
  kBurst,
  kPageReach,
  kPageWalk
};
inline constexpr auto kTileParameters = std::to_array<Parameter>({
    {"efficiency", 0.95, 0.3, 1.3, "", "share of the sustained peak that the largest tile reaches"},
    {"small_tile", 0.93, 0.6, 1.0, "", "efficiency kept when the tile's area is halved"},
    {"latency", 0.2, 0.001, 5, "", "thread blocks missing to hide latency, of the largest tile", 1},
    {"prologue", 10, 0.1, 300, "", "start and end of a thread block, in steps of k", 1},
    {"bandwidth", 0.75, 0.05, 1.2, "", "share of the memory bandwidth"},
    {"launch", 4e-6, 1e-7, 2e-4, "s", "each call"},
    {"strided", 0.5, 0.01, 5, "", "extra bytes read of an operand with long rows along k", 1},
    {"cache", 0.4, 0.05, 2, "", "share of 64 bytes per clock and SM that the L2 cache gives"},
    {"resident", 0.5, 0.05, 2, "", "operands of this share of the L2 cache are half there when repeated"},
    {"burst", 2e-3, 1e-5, 0.1, "s", "full clock after a pause, on cards that power holds below it", 1},
    {"page_reach", 2e6, 5e5, 1e8, "bytes", "of operands within reach of the TLB, for each SM; before Volta"},
    {"page_walk", 1e11, 1e9, 1e13, "bytes/s", "rate of the reads beyond its reach; before Volta", 0.7},
});

inline constexpr double kFullClock = 0.92;  // of the quoted peak, where power does not limit: hardware.h
inline constexpr double kLongRow = 400;     // elements

// Tiles of one matrix.
struct Tiling {
  double rows, columns, area;

  Tiling(const GemmCall& call, const Choice& choice)
      : rows(whole_up(call.m / choice.tile_m)),
        columns(whole_up(call.n / choice.tile_n)),
        area(static_cast<double>(choice.tile_m) * choice.tile_n) {}
};

// Bytes of the operand rows along k that the thread blocks running at one time read from.
[[nodiscard]] inline double rows_in_use(const GemmCall& call, const Choice& choice, const Tiling& tiles,
                                        const Hardware& hardware) {
  const double running =
      std::min(hardware.sm_count * resident_blocks(tiles.area), tiles.rows * tiles.columns * choice.splits);
  const double m = std::min(call.m, std::min(tiles.rows, running) * choice.tile_m);
  const double n = std::min(call.n, whole_up(running / tiles.rows) * choice.tile_n);
  return call.element_bytes * call.k * ((call.transpose_a ? m : 0) + (call.transpose_b ? 0 : n));
}

template <class T>
[[nodiscard]] T tile_memory(const GemmCall& call, const Hardware& hardware, const Sustained<T>& sustained,
                            const T& cache_rate, std::span<const T> p) {
  const double a = call.batch * call.element_bytes * call.m * call.k;
  const double b = call.batch * call.element_bytes * call.k * call.n;
  const double c = call.batch * call.output_bytes * call.m * call.n * (call.reads_c ? 2 : 1);
  const double along_k = (call.transpose_a ? a : 0) + (call.transpose_b ? 0 : b);
  const T moved = a + b + c + p[kStrided] * (along_k * call.k / (call.k + kLongRow));
  const T from_memory = moved / (hardware.bandwidth * sustained.bandwidth * p[kBandwidth]);
  if (!call.hot || hardware.l2_bytes == 0) return from_memory;
  const T ratio = (a + b + c) / (p[kResident] * hardware.l2_bytes);
  const T miss = ratio * ratio / (1.0 + ratio * ratio);
  return miss * from_memory + (1.0 - miss) * ((a + b + c) / cache_rate);
}

// Page walks of the tiles' reads.
template <class T>
[[nodiscard]] T tile_pages(const GemmCall& call, const Choice& choice, const Tiling& tiles,
                           const Hardware& hardware, std::span<const T> p) {
  if (hardware.compute_capability >= 70) return T(0);
  const double in_use = rows_in_use(call, choice, tiles, hardware);
  const T reach = p[kPageReach] * hardware.sm_count;
  if (in_use <= 0 || reach >= in_use) return T(0);
  const double reads =
      call.element_bytes * call.batch * call.k * (tiles.columns * call.m + tiles.rows * call.n);
  return reads * (1.0 - reach / in_use) / p[kPageWalk];
}

// The time of a call after a pause, from that at the clock that power allows for long.
template <class T>
[[nodiscard]] T after_pause(const Sustained<T>& sustained, const T& time, const T& burst) {
  const T share = sustained.clock / kFullClock;
  if (share >= 1.0) return time;
  const T fast = time * share;
  return fast < burst ? fast : burst + (fast - burst) / share;
}

template <class T>
[[nodiscard]] TimeParts<T> tile_time(const GemmCall& call, const Choice& choice, const Hardware& hardware,
                                     const Sustained<T>& sustained, std::span<const T> p) {
  const Tiling tiles(call, choice);
  const T cache_rate = p[kCache] * sustained.clock * (64 * hardware.clock * hardware.sm_count);
  const BlockGrid grid{tiles.rows * tiles.columns * call.batch * choice.splits, tiles.area,
                       call.k / choice.splits};
  const T compute = block_time(grid, hardware, sustained.clock,
                               BlockRates<T>{p[kEfficiency], p[kSmallTile], p[kLatency], p[kPrologue]});
  const T memory = tile_memory(call, hardware, sustained, cache_rate, p);
  const T pages = tile_pages(call, choice, tiles, hardware, p);
  T overhead = p[kLaunch];
  if (choice.splits > 1) {
    overhead = overhead + 8 * call.m * call.n * call.batch * choice.splits / cache_rate;
  }
  const T fetched = pnorm2(memory, pages);
  const T busy = pnorm2(compute, fetched);
  return {compute, fetched, overhead,
          overhead + (call.from_idle ? after_pause(sustained, busy, p[kBurst]) : busy)};
}

}  // namespace tbdsim
