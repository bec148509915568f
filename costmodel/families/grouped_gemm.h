// The products of a mixture's experts in one call (Transformer Engine's general_grouped_gemm): each expert's
// product is launched by itself, on a few streams, so that they fill the GPU together like one batched
// product, but take no less than `expert` each.
//
//   time = launch + sqrt(compute^2 + memory^2 + (experts * expert)^2), the least over the tiles
//
// compute, memory and launch: tile_time.h; expert (s): fitted. Small experts take 8.6 to 9.2 us each on a
// B200, whatever their size (MooreThreads/SimuMax's table: 80 experts of 308 x 5120 x 1536 and 160 of 154).
#pragma once

#include "costmodel/families/batched_gemm.h"

namespace tbdsim {

struct GroupedGemmFamily {
  using Call = GemmCall;
  using Sizes = Call;
  static constexpr std::string_view name = "grouped_gemm";
  static constexpr std::size_t kExpert = kTileParameters.size();
  static constexpr auto parameters = [] {
    std::array<Parameter, kExpert + 1> all;
    std::copy(kTileParameters.begin(), kTileParameters.end(), all.begin());
    all[kExpert] = {"expert", 6e-6, 1e-7, 5e-5, "s", "least time of an expert's product", 0.7};
    return all;
  }();

  template <class Visit>
  static void for_each_choice(const Call& call, const Hardware& hardware, Visit visit) {
    BatchedGemmFamily::for_each_choice(call, hardware, visit);
  }
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice& choice, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p) {
    return with_experts(tile_time(call, choice, hardware, sustained, p), call, p);
  }
  template <class T>
  static GridWork<T> grid_work(const Hardware& hardware, std::span<const T> p) {
    return tile_grid_work(hardware, p);
  }
  template <class Grids, class Visit>
  static void for_each_time(const Call& call, const Hardware& hardware,
                            const AchievedFraction<double>& sustained, std::span<const double> p,
                            const Grids& grids, Visit visit) {
    BatchedGemmFamily::for_each_time(call, hardware, sustained, p, grids,
                                     [&](const Choice& choice, const TimeParts<double>& parts) {
                                       visit(choice, with_experts(parts, call, p));
                                     });
  }
  static double workspace_bytes(const Call&, const Choice&) { return 0; }
  static double flops(const Call& call) { return GemmFamily::flops(call); }
  static double executed(const Sizes& call, const Choice&) { return flops(call); }
  static double bytes(const Call& call) { return GemmFamily::bytes(call); }
  static double operand_bytes(const Call& call) { return bytes(call); }
  static std::uint64_t group(const Call& call) { return GemmFamily::group(call); }
  static Features features(const Call& call) { return GemmFamily::features(call); }

 private:
  template <class T>
  static TimeParts<T> with_experts(TimeParts<T> parts, const Call& call, std::span<const T> p) {
    const T experts = call.batch * p[kExpert];
    parts.total = parts.overhead + smooth_max(smooth_max(parts.compute, parts.memory), experts);
    return parts;
  }
};

}  // namespace tbdsim
