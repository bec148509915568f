// Many GEMMs of one shape in one call (cuBLAS strided batched gemm; attention): no split, and few tiles for
// each architecture: those in the kernel names of the NeuSight tables (cuBLAS 12, fp32), which cover more
// than 99 % of its rows before Hopper.
//
//   time = tile_time, the least over the tiles
#pragma once

#include "costmodel/families/gemm.h"

namespace tbdsim {

struct BatchedGemmFamily {
  using Call = GemmCall;
  using Sizes = Call;
  static constexpr std::string_view name = "batched_gemm";
  static constexpr bool batched = true;
  static constexpr auto parameters = kTileParameters;

  template <class Visit>
  static void for_each_choice(const Call& call, const Hardware& hardware, Visit visit);
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice& choice, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p) {
    return tile_time(call, choice, hardware, sustained, p);
  }
  template <class T>
  static GridWork<T> grid_work(const Hardware& hardware, std::span<const T> p) {
    return tile_grid_work(hardware, p);
  }
  template <class Grids, class Visit>
  static void for_each_time(const Call& call, const Hardware& hardware,
                            const AchievedFraction<double>& sustained, std::span<const double> p,
                            const Grids& grids, Visit visit) {
    const TileTime<double> time(call, hardware, sustained, p);
    for_each_choice(call, hardware, [&](const Choice& choice) {
      visit(choice, time.of(grids.operations(tile_grid(call, choice)), choice.splits));
    });
  }
  static double workspace_bytes(const Call&, const Choice&) { return 0; }
  static double flops(const Call& call) { return GemmFamily::flops(call); }
  static double executed(const Sizes& call, const Choice&) { return flops(call); }
  static double bytes(const Call& call) { return GemmFamily::bytes(call); }
  static double operand_bytes(const Call& call) { return bytes(call); }
  static std::uint64_t group(const Call& call) { return GemmFamily::group(call); }
  static Features features(const Call& call) { return GemmFamily::features(call); }
};

// GPUs without tensor cores for the arithmetic; on tensor cores every tile occurs.
inline constexpr Tile kPascalTiles[] = {{128, 64}};
inline constexpr Tile kVoltaTiles[] = {{32, 128}, {64, 64}, {128, 32}};
inline constexpr Tile kTuringTiles[] = {{128, 64}, {64, 64}, {128, 32}, {32, 128}};
inline constexpr Tile kAmpereTiles[] = {{128, 128}};

[[nodiscard]] inline std::span<const Tile> batched_tiles(const Hardware& hardware) {
  if (hardware.tensor_cores || hardware.compute_capability >= 90) return kTiles;
  if (hardware.compute_capability < 70) return kPascalTiles;
  if (hardware.compute_capability < 75) return kVoltaTiles;
  return hardware.compute_capability < 80 ? std::span<const Tile>(kTuringTiles) : kAmpereTiles;
}

template <class Visit>
void BatchedGemmFamily::for_each_choice(const Call&, const Hardware& hardware, Visit visit) {
  for (const auto& [tile_m, tile_n] : batched_tiles(hardware)) {
    visit(Choice{Algorithm::gemm, tile_m, tile_n, 1});
  }
}

}  // namespace tbdsim
