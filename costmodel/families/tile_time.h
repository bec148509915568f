// A GEMM as a grid of thread blocks, each with a tile of the result: the formula that GemmFamily and
// BatchedGemmFamily share. fp32, tf32, fp16, bf16 and fp8 differ in peak and element size only.
//
//   compute = seconds of thread_blocks.h for ceil(m / tm) * ceil(n / tn) * batch * splits blocks, k / splits deep;
//             divided by across_k_factor() where rows of an operand do not run along k, by unaligned where they
//             are no multiples of 16 bytes, times far_rows below; at no more than the rate that narrow loads
//             feed (row_alignment.h)
//   far_rows = 1, or 1 + bytes of a row / far_row where the rows of both operands run along k before Volta
//   memory  = miss * moved / DRAM rate + (1 - miss) * (A + B + C) / L2 rate
//   miss    = 1, or z^2 / (1 + z^2) with z = (A + B + C) / (resident * L2) where a call is repeated at once
//   moved   = A + B + C + strided * S * k / (k + 400): 32 bytes of a row along k are read at a time, and the longer the
//             rows, the less of an open DRAM page such reads share
//   time    = launch + sqrt(compute^2 + memory^2) + parts of a split / L2 rate
//   L2 rate = cache * 64 bytes per clock and SM * clock
//
// m, n, k: sizes of the product; tm, tn: of the tile; A, B, C: bytes of the operands and the result (twice
// where it is read); S: bytes of operands with rows along k; L2: its size in bytes; launch (s), resident,
// strided, cache, unaligned, far_row (bytes): fitted.
//
// Rows that are multiples of 16 bytes are loaded four floats at a time: in NeuSight's batched products they
// are 1.3 times as fast on P100 and A100, 1.45 on T4, and for linear layers cuBLAS names other kernels for
// them. Before Volta products with both operands along k lose speed with the length of their rows, at the
// same rate on the P100 and the P4, whose memories differ fourfold: a tile's rows lie in ever more pages
// than the first translation buffer holds (32 MB on both; Jia et al., arXiv:1804.06826, table 3.1).
//
// Sources: waves, tiles and splits of k: NVIDIA, "Matrix Multiplication Background User's Guide"; which
// tiles: kernel names and grids of the NeuSight tables (sitar-lab/NeuSight); the other terms are named after
// a likely mechanism, which no hardware counter has confirmed. Two more terms were tried and left out,
// because they made GPUs that were left out of the fit worse: tiles read again from DRAM by each wave of
// thread blocks (linear layers of an L4 10 -> 16 %) and full clock after a pause (batched products
// 13.6 -> 18.9 %).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "costmodel/call.h"
#include "costmodel/families/row_alignment.h"
#include "costmodel/families/thread_blocks.h"

namespace tbdsim {

struct TileParameter {
  enum : std::size_t {
    kEfficiency,
    kSmallTile,
    kLatency,
    kPrologue,
    kBandwidth,
    kLaunch,
    kStrided,
    kCache,
    kResident,
    kUnaligned,
    kFarRow
  };
};
inline constexpr auto kTileParameters = std::to_array<Parameter>({
    {"efficiency", 0.95, 0.3, kBoostOverSustained, "",
     "share of the sustained peak that the largest tile reaches", 0.5, kBoostLimit},
    // Half a tile loads 1.5 times the operands for each product: two thirds, with a tenth to spare.
    {"small_tile", 0.93, 0.6, 1.0, "", "efficiency kept when the tile's area is halved", 0.5,
     "a smaller tile is never more efficient, and loads at most half as much again for each product"},
    {"latency", 0.2, 0.001, 5, "", "thread blocks missing to hide latency, of the largest tile", 1},
    {"prologue", 10, 0.1, 1000, "", "start and end of a thread block, in steps of k", 1},
    {"bandwidth", 0.75, 0.05, 1.2, "", "share of the memory bandwidth", 0.5,
     "the L2 cache gives a part, but not most"},
    {"launch", 4e-6, 1e-7, 2e-4, "s", "each call"},
    {"strided", 0.5, 0.01, 5, "", "extra bytes read of an operand with long rows along k", 1},
    {"cache", 0.4, 0.05, 2, "", "share of 64 bytes per clock and SM that the L2 cache gives"},
    {"resident", 0.5, 0.05, 2, "", "operands of this share of the L2 cache are half there when repeated"},
    {"unaligned", 0.95, 0.3, 1, "", "rate kept where rows are no multiples of 16 bytes", 0.3,
     "wide loads are never slower"},
    {"far_row", 1.3e5, 1e4, 1e7, "B", "rows along k of this length halve the rate; before Volta", 1},
});

inline constexpr double kLongRow = 400;  // elements

// Time over that of short rows, where rows of both operands run along k on GPUs before Volta.
template <class T>
[[nodiscard]] T far_row_factor(const GemmCall& call, const Hardware& hardware, const T& far_row) {
  constexpr double kVolta = 70;
  const bool along_k = call.transpose_a && !call.transpose_b;  // both operands
  if (hardware.compute_capability >= kVolta || !along_k) return T(1);
  return 1.0 + call.element_bytes * call.k / far_row;
}

// Rate over that of operands whose rows all run along k: hardware.h, tf32_across_k. One of the two may come
// from registers, at 0.9 of the rate (75 pairs of products in TF32 on an H100, calibrate/records/h100_sxm).
[[nodiscard]] inline double across_k_factor(const GemmCall& call, const Hardware& hardware) {
  constexpr double kFromRegisters = 0.9;
  if (hardware.across_k == 1 || (call.transpose_a && !call.transpose_b)) return 1;
  return call.transpose_a == call.transpose_b ? kFromRegisters : hardware.across_k;
}

template <class T>
[[nodiscard]] T tile_memory(const GemmCall& call, const Hardware& hardware,
                            const AchievedFraction<T>& sustained, const T& cache_rate, std::span<const T> p) {
  const double a = call.batch * call.element_bytes * call.m * call.k;
  const double b = call.batch * call.element_bytes * call.k * call.n;
  const double c = call.batch * call.output_bytes * call.m * call.n * (call.reads_c ? 2 : 1);
  const double along_k = (call.transpose_a ? a : 0) + (call.transpose_b ? 0 : b);
  const double all = a + b + c;
  const double in_long_rows = along_k * call.k / (call.k + kLongRow);
  const T moved = all + p[TileParameter::kStrided] * in_long_rows;
  const T memory_rate = hardware.bandwidth * sustained.bandwidth * p[TileParameter::kBandwidth];
  const T from_memory = moved / memory_rate;
  if (!call.hot || hardware.l2_bytes == 0) return from_memory;
  const T ratio = all / (p[TileParameter::kResident] * hardware.l2_bytes);
  const T miss = ratio * ratio / (1.0 + ratio * ratio);
  const T from_cache = std::min<T>(all / cache_rate, from_memory);  // bytes from DRAM pass L2 too
  return miss * from_memory + (1.0 - miss) * from_cache;
}

template <class T>
[[nodiscard]] GridWork<T> tile_grid_work(const Hardware& hardware, std::span<const T> p) {
  return {hardware.sm_count,
          {p[TileParameter::kSmallTile], p[TileParameter::kLatency], p[TileParameter::kPrologue],
           hardware.rate_share},
          hardware.power};
}

// Times of one call with any choice; terms that all choices share are computed once.
template <class T>
class TileTime {
 public:
  TileTime(const GemmCall& call, const Hardware& hardware, const AchievedFraction<T>& sustained,
           std::span<const T> p)
      : launch_(p[TileParameter::kLaunch]), part_bytes_(8 * call.m * call.n * call.batch) {
    const T clock = sustained.clock * across_k_factor(call, hardware);
    rate_ = hardware.peak * clock * p[TileParameter::kEfficiency] /
            far_row_factor(call, hardware, p[TileParameter::kFarRow]);
    if (!rows_aligned(call)) rate_ = rate_ * p[TileParameter::kUnaligned];
    rate_ = std::min<T>(rate_, T(rate_of_narrow_loads(call, hardware)));
    cache_rate_ = p[TileParameter::kCache] * sustained.clock * (64 * hardware.clock * hardware.sm_count);
    memory_ = tile_memory(call, hardware, sustained, cache_rate_, p);
  }

  // `operations`: those of the choice's grid. Choices with the same number of splits differ in them alone.
  [[nodiscard]] TimeParts<T> of(const T& operations, double splits) const {
    const T compute = operations / rate_;
    const T overhead = splits > 1 ? launch_ + part_bytes_ * splits / cache_rate_ : launch_;
    return {compute, memory_, overhead, overhead + smooth_max(compute, memory_)};
  }

 private:
  T launch_;
  double part_bytes_;
  T rate_, cache_rate_, memory_;
};

inline constexpr double kLeastSplit = 64;  // multiply-adds of each result of a part of a split k

// Thread blocks of a choice. A part of a split k takes as long as kLeastSplit at least: a product that cannot
// be split further is never slower than a deeper one that can.
[[nodiscard, gnu::always_inline]] inline BlockGrid tile_grid(const GemmCall& call, const Choice& choice) {
  const double rows = ceil_nonneg(call.m / choice.tile_m);
  const double columns = ceil_nonneg(call.n / choice.tile_n);
  const double part = call.k / choice.splits;
  return {.blocks = rows * columns * call.batch * choice.splits,
          .area = static_cast<double>(choice.tile_m) * choice.tile_n,
          .depth = choice.splits == 1 ? part : std::max(part, kLeastSplit)};
}

template <class T>
[[nodiscard]] TimeParts<T> tile_time(const GemmCall& call, const Choice& choice, const Hardware& hardware,
                                     const AchievedFraction<T>& sustained, std::span<const T> p) {
  const T operations = tile_grid_work(hardware, p).operations(tile_grid(call, choice));
  return TileTime<T>(call, hardware, sustained, p).of(operations, choice.splits);
}

}  // namespace tbdsim
