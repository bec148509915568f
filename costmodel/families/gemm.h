// One GEMM (cuBLAS gemm, a fully connected layer): any tile, and k may be split over thread blocks.
//
//   time = tile_time + split if k is split, the least over tiles and splits; split (s): fitted
//
// Tiles are those that cuBLAS 12 names most on any architecture.
#pragma once

#include <iterator>

#include "costmodel/families/tile_time.h"
#include "costmodel/residuals/log2_of_size.h"

namespace tbdsim {

struct GemmFamily {
  using Call = GemmCall;
  using Sizes = Call;
  static constexpr std::string_view name = "gemm";
  static constexpr bool batched = false;
  static constexpr std::size_t kSplit = kTileParameters.size();
  static constexpr auto parameters = [] {
    std::array<Parameter, kSplit + 1> all;
    std::copy(kTileParameters.begin(), kTileParameters.end(), all.begin());
    all[kSplit] = {"split", 5e-6,
                   1e-7,    5e-5,
                   "s",     "adding the parts of a split",
                   0.5,     "a split that costs so much is never chosen: no call tells its cost"};
    return all;
  }();

  // Calls visit(choice, its tile_grid) for each.
  template <class Visit>
  static void for_each_grid(const Call& call, const Hardware& hardware, Visit visit);
  template <class Visit>
  static void for_each_choice(const Call& call, const Hardware& hardware, Visit visit) {
    for_each_grid(call, hardware, [&](const Choice& choice, const BlockGrid&) { visit(choice); });
  }
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice& choice, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p) {
    return with_split(tile_time(call, choice, hardware, sustained, p), choice, p);
  }
  template <class T>
  static GridWork<T> grid_work(const Hardware& hardware, std::span<const T> p) {
    return tile_grid_work(hardware, p);
  }
  template <class Grids, class Visit>
  static void for_each_time(const Call& call, const Hardware& hardware,
                            const AchievedFraction<double>& sustained, std::span<const double> p,
                            const Grids& grids, Visit visit);
  static double workspace_bytes(const Call& call, const Choice& choice) {
    return choice.splits > 1 ? 4 * call.m * call.n * call.batch * choice.splits : 0;
  }
  static double flops(const Call& call) { return 2 * call.m * call.n * call.k * call.batch; }
  static double executed(const Sizes& call, const Choice&) { return flops(call); }
  static double bytes(const Call& call) {
    const double operands = call.element_bytes * (call.m * call.k + call.k * call.n);
    const double results = call.output_bytes * call.m * call.n * (call.reads_c ? 2 : 1);
    return call.batch * (operands + results);
  }
  static double operand_bytes(const Call& call) { return bytes(call); }
  static std::uint64_t group(const Call& call) {
    return static_cast<std::uint64_t>(call.transpose_a ? 2 : 0) + (call.transpose_b ? 1 : 0) +
           (rows_aligned(call) ? 0 : 4);
  }
  static Features features(const Call& call) {
    return {group(call),
            4,
            {log2_of_size(call.m), log2_of_size(call.n), log2_of_size(call.k), log2_of_size(call.batch)}};
  }

 private:
  template <class T>
  static TimeParts<T> with_split(TimeParts<T> parts, const Choice& choice, std::span<const T> p) {
    if (choice.splits > 1) {
      parts.overhead = parts.overhead + p[kSplit];
      parts.total = parts.total + p[kSplit];
    }
    return parts;
  }
};

inline constexpr Tile kTiles[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {128, 32},
                                  {32, 128},  {64, 32},  {32, 64},  {32, 32}};
inline constexpr std::uint16_t kSplits[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
inline constexpr auto kPlaceOfSplits = [] {  // among none and kSplits
  std::array<std::uint8_t, std::end(kSplits)[-1] + 1> places{};
  for (std::uint8_t i = 0; i < std::size(kSplits); ++i) places[kSplits[i]] = i + 1;
  return places;
}();
inline constexpr double kMostWaves = 4;  // a split into more waves of thread blocks gains nothing

template <class Visit>
void GemmFamily::for_each_grid(const Call& call, const Hardware& hardware, Visit visit) {
  for_each_tile(
      kTiles, [&](const Tile& tile) __attribute__((always_inline)) {
        Choice choice{Algorithm::gemm, tile.first, tile.second, 1};
        BlockGrid grid = tile_grid(call, choice);
        const double whole_blocks = grid.blocks;
        visit(choice, grid);
        choice.algorithm = Algorithm::split_k;
        for (const std::uint16_t splits : kSplits) {
          const double blocks = whole_blocks * splits;
          if (grid.depth <= kLeastSplit || blocks > kMostWaves * hardware.sm_count) break;
          grid.blocks = blocks;
          grid.depth = std::max(call.k / splits, kLeastSplit);
          choice.splits = splits;
          visit(choice, grid);
        }
      });
}

template <class Grids, class Visit>
void GemmFamily::for_each_time(const Call& call, const Hardware& hardware,
                               const AchievedFraction<double>& sustained, std::span<const double> p,
                               const Grids& grids, Visit visit) {
  std::array<LeastWork, std::size(kSplits) + 1> of_each;  // by number of splits
  const TileTime<double> time(call, hardware, sustained, p);
  const auto keep_least = [&](const Choice& choice, const BlockGrid& grid) __attribute__((always_inline)) {
    of_each[kPlaceOfSplits[choice.splits]].keep_less(grids.operations(grid), choice);
  };
  for_each_grid(call, hardware, keep_least);
  double least_of_fewer_splits = std::numeric_limits<double>::infinity();
  for (const auto& [operations, choice] : of_each) {
    if (operations >= least_of_fewer_splits) continue;  // more splits cost more start-up
    least_of_fewer_splits = operations;
    visit(choice, with_split(time.of(operations, choice.splits), choice, p));
  }
}

}  // namespace tbdsim
