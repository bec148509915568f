// Matrix products: tiles, waves of thread blocks, split-K, latency hiding.
//
//   blocks = ceil(m / tm) ceil(n / tn) batch splits,  waves = ceil(blocks / SMs)
//   compute = waves 2 tm tn (k / splits + prologue) / (peak / SMs  clock  efficiency  small_tile^log2(16384 /
//   (tm tn))  hidden) hidden  = q / (q + h) (o + h) / o,  o = clamp(32768 / (tm tn), 1, 16) resident blocks,
//   q = min(waves, o),
//             h = latency 16384 / (tm tn)
//   memory  = (bytes of A, B, C + 8 m n batch splits if split) / bandwidth
//   time    = launch + sqrt(compute^2 + memory^2) + split, the least over tiles and splits
//
// Source: ../shared design study section 3.1; parameters are fitted, see the profiles.
#pragma once

#include <algorithm>

#include "costmodel/call.h"
#include "costmodel/kernel_time.h"

namespace tbdsim {

struct GemmFamily {
  using Call = GemmCall;
  static constexpr std::string_view name = "gemm";
  static constexpr bool batched = false;
  enum { kEfficiency, kSmallTile, kLatency, kPrologue, kBandwidth, kLaunch, kSplit };
  static constexpr auto parameters = std::to_array<Parameter>({
      {"efficiency", 0.95, 0.3, 1.3, "", "share of the sustained peak that the largest tile reaches"},
      {"small_tile", 0.93, 0.6, 1.0, "", "efficiency kept when the tile's area is halved"},
      {"latency", 0.05, 0.001, 3, "", "thread blocks missing to hide latency, of the largest tile"},
      {"prologue", 10, 0.1, 300, "", "start and end of a thread block, in steps of k"},
      {"bandwidth", 0.6, 0.05, 1.2, "", "share of the memory bandwidth"},
      {"launch", 5e-6, 1e-7, 2e-4, "s", "each call"},
      {"split", 5e-6, 1e-7, 5e-5, "s", "adding the parts of a split"},
  });

  template <class Visit>
  static void for_each_choice(const Call& call, const Hardware&, Visit visit);
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice& choice, const Hardware& hardware,
                           const Sustained<T>& sustained, std::span<const T> p);
  static double workspace_bytes(const Call& call, const Choice& choice) {
    return choice.splits > 1 ? 4 * call.m * call.n * call.batch * choice.splits : 0;
  }
  static double flops(const Call& call) { return 2 * call.m * call.n * call.k * call.batch; }
  static double bytes(const Call& call) {
    return call.batch * (call.element_bytes * (call.m * call.k + call.k * call.n) +
                         call.output_bytes * call.m * call.n * (call.reads_c ? 2 : 1));
  }
  static Features features(const Call& call);
};

inline constexpr std::pair<std::uint16_t, std::uint16_t> kTiles[] = {
    {128, 128}, {128, 64}, {64, 128}, {64, 64}, {128, 32}, {32, 128}, {64, 32}, {32, 64}, {32, 32}};
inline constexpr std::uint16_t kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

template <class Visit>
void GemmFamily::for_each_choice(const Call& call, const Hardware&, Visit visit) {
  for (const auto& [tile_m, tile_n] : kTiles) {
    for (const std::uint16_t splits : kSplits) {
      if (splits > 1 && call.k / splits < 64) break;
      visit(Choice{splits > 1 ? Algorithm::split_k : Algorithm::gemm, tile_m, tile_n, splits});
    }
  }
}

template <class T>
TimeParts<T> GemmFamily::time(const Call& call, const Choice& choice, const Hardware& hardware,
                              const Sustained<T>& sustained, std::span<const T> p) {
  const double area = static_cast<double>(choice.tile_m) * choice.tile_n;
  const double blocks =
      std::ceil(call.m / choice.tile_m) * std::ceil(call.n / choice.tile_n) * call.batch * choice.splits;
  const double waves = std::ceil(blocks / hardware.sm_count);
  const double resident = std::clamp(32768 / area, 1.0, 16.0);
  const double queued = std::min(waves, resident);
  T efficiency = p[kEfficiency];
  for (double a = area; a < 16384; a *= 2) efficiency = efficiency * p[kSmallTile];
  const T gap = p[kLatency] * (16384 / area);
  const T hidden = queued / (queued + gap) * ((resident + gap) / resident);
  const T compute = waves * 2 * area * (call.k / choice.splits + p[kPrologue]) /
                    (hardware.peak / hardware.sm_count * sustained.clock * efficiency * hidden);
  const double results = call.m * call.n * call.batch;
  const double moved = bytes(call) + (choice.splits > 1 ? 8 * results * choice.splits : 0);
  const T memory = moved / (hardware.bandwidth * sustained.bandwidth * p[kBandwidth]);
  T overhead = p[kLaunch];
  if (choice.splits > 1) overhead = overhead + p[kSplit];
  return {compute, memory, overhead, overhead + pnorm2(compute, memory)};
}

inline Features GemmFamily::features(const Call& call) {
  return {static_cast<std::uint64_t>(call.transpose_a ? 2 : 0) + (call.transpose_b ? 1 : 0),
          4,
          {std::log2(call.m), std::log2(call.n), std::log2(call.k), std::log2(call.batch)}};
}

}  // namespace tbdsim
