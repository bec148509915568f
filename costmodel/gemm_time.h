// One matrix product (cuBLAS gemm, a fully connected layer): any tile, and k may be split over thread blocks.
//
//   time = tile_time + split,   the least over tiles and splits
//
// Tiles are those that cuBLAS 12 names most on any architecture.
#pragma once

#include <iterator>

#include "costmodel/log2_of_size.h"
#include "costmodel/tile_time.h"

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
    all[kSplit] = {"split", 5e-6, 1e-7, 5e-5, "s", "adding the parts of a split"};
    return all;
  }();

  template <class Visit>
  static void for_each_choice(const Call& call, const Hardware& hardware, Visit visit);
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice& choice, const Hardware& hardware,
                           const Sustained<T>& sustained, std::span<const T> p) {
    TimeParts<T> parts = tile_time(call, choice, hardware, sustained, p);
    if (choice.splits > 1) {
      parts.overhead = parts.overhead + p[kSplit];
      parts.total = parts.total + p[kSplit];
    }
    return parts;
  }
  static double workspace_bytes(const Call& call, const Choice& choice) {
    return choice.splits > 1 ? 4 * call.m * call.n * call.batch * choice.splits : 0;
  }
  static double flops(const Call& call) { return 2 * call.m * call.n * call.k * call.batch; }
  static double bytes(const Call& call) {
    return call.batch * (call.element_bytes * (call.m * call.k + call.k * call.n) +
                         call.output_bytes * call.m * call.n * (call.reads_c ? 2 : 1));
  }
  static std::uint64_t group(const Call& call) {
    return static_cast<std::uint64_t>(call.transpose_a ? 2 : 0) + (call.transpose_b ? 1 : 0);
  }
  static Features features(const Call& call) {
    return {group(call),
            4,
            {log2_of_size(call.m), log2_of_size(call.n), log2_of_size(call.k), log2_of_size(call.batch)}};
  }
};

inline constexpr std::pair<std::uint16_t, std::uint16_t> kTiles[] = {
    {128, 128}, {128, 64}, {64, 128}, {64, 64}, {128, 32}, {32, 128}, {64, 32}, {32, 64}, {32, 32}};
inline constexpr std::uint16_t kSplits[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
inline constexpr double kLeastSplit = 64;  // of k
inline constexpr double kMostWaves = 4;    // a split whose blocks fill the card more often gains nothing

// A tile of which half would do is never the fastest.
[[nodiscard]] inline bool is_oversized(double tile, double size) { return tile > 32 && tile / 2 >= size; }

template <class Visit>
void GemmFamily::for_each_choice(const Call& call, const Hardware& hardware, Visit visit) {
  for (const auto& [tile_m, tile_n] : kTiles) {
    if (is_oversized(tile_m, call.m) || is_oversized(tile_n, call.n)) continue;
    const double blocks = whole_up(call.m / tile_m) * whole_up(call.n / tile_n) * call.batch;
    const auto deep_enough = [&](double splits) { return call.k >= kLeastSplit * splits; };
    visit(Choice{Algorithm::gemm, tile_m, tile_n, 1});
    for (const std::uint16_t splits : kSplits) {
      if (!deep_enough(splits) || blocks * splits > kMostWaves * hardware.sm_count) break;
      // Half of the SMs idle: twice the parts take half the time.
      if (2 * splits <= std::end(kSplits)[-1] && 2 * blocks * splits <= hardware.sm_count &&
          deep_enough(2 * splits))
        continue;
      visit(Choice{Algorithm::split_k, tile_m, tile_n, splits});
    }
  }
}

}  // namespace tbdsim
