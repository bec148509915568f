// The types and the minimisation that all time formulas share. A family (gemm.h, batched_gemm.h,
// convolution.h, recurrent.h, stream.h) describes kernels of one sort:
//
//   struct GemmFamily {
//     using Call = GemmCall;
//     static constexpr std::string_view name = "gemm";
//     static constexpr bool batched = false;   // GEMMs only: which of the two families it is
//     static constexpr auto parameters = std::to_array<Parameter>({...});   // fitted
//     using Sizes = GemmCall;   // a call with the sizes that all its choices share, constructed from the call
//     // Calls visit(choice) for every algorithm that a library could choose; depends on sizes alone.
//     template <class Visit> static void for_each_choice(const Sizes&, const Hardware&, Visit visit);
//     // The time with one choice. Continuous in T; sizes and counts of waves are plain doubles.
//     template <class T> static TimeParts<T> time(const Sizes&, const Choice&, const Hardware&,
//                                                 const AchievedFraction<T>&, std::span<const T> p);
//     // Families whose choices are grids of thread blocks (thread_blocks.h) only: the work of grids, and
//     // visit(choice, time) for each choice that can be the fastest. Grids: GridWork<double> or GridWorkTable.
//     template <class T> static GridWork<T> grid_work(const Hardware&, std::span<const T> p);
//     template <class Grids, class Visit>
//     static void for_each_time(const Sizes&, const Hardware&, const AchievedFraction<double>&,
//                               std::span<const double> p, const Grids&, Visit visit);
//     static double workspace_bytes(const Sizes&, const Choice&);
//     static double flops(const Call&);          // multiplications and additions of the mathematical definition
//     static double executed(const Sizes&, const Choice&);   // those that the choice's algorithm does, unpadded
//     static double bytes(const Call&);          // read and written, recurrent weights once a step
//     static double operand_bytes(const Call&);  // each operand once
//     static std::uint64_t group(const Call&);   // residuals are interpolated between calls of one group only
//     static Features features(const Call&);     // and between those that are near one another in these
//   };
//
// The time of a call is the minimum over its choices. T is double in predictions and an
// automatic-differentiation type in fits.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

namespace tbdsim {

// A fitted number. Its prior is log-normal about `start`.
struct Parameter {
  std::string_view name;  // key in the profile
  double start = 1, lower = 0, upper = 0;
  std::string_view unit;  // "", "us", "elements"
  std::string_view meaning;
  double prior = 0.5;  // standard deviation of its logarithm
  std::string_view
      limit{};  // reason why no value lies beyond a bound at which fits may end; empty: none does
};

// A kernel's rate over the sustained peak is bounded by the data sheet's: work on fp32 lanes holds at least
// 0.77 of the boost clock (an estimate).
inline constexpr double kBoostOverSustained = 1.3;
inline constexpr std::string_view kBoostLimit = "no rate is beyond the data sheet's peak at its boost clock";

// A board's limit of power on the clock under full load: the clock over the one without the limit, and the
// power of the share of busy SMs that it falls with. 1: no limit.
struct PowerLimit {
  double clock_share = 1;
  double exponent = 1;

  friend bool operator==(const PowerLimit&, const PowerLimit&) = default;
};

// A GPU's rates and sizes for one arithmetic, from its data sheet.
struct Hardware {
  double sm_count = 1;
  double peak = 1;       // flop/s
  double bandwidth = 1;  // byte/s
  double l2_bytes = 0;
  double clock = 1;               // Hz, of the SMs
  double watts = 0;               // thermal design power
  PowerLimit power{};             // what the sustained clock includes of it
  double compute_capability = 0;  // 6.1 -> 61
  bool tensor_cores = false;
  double rate_share = 1;  // operations a clock and SM over the most of its generation's SMs: hardware.h
  double tile_loss = 1;  // what convolutions lose in smaller tiles, over what they lost where they were timed
  double across_k = 1;   // rate of products whose operands have no rows along k, over the others'
  bool hbm = false;      // stacked memory, else GDDR
  bool ecc = false;      // check bits are on; GDDR keeps them among the data
  double bus = 1;        // byte/s that the bus to the host achieves
};

// Sustained rates over the data sheet's.
template <class T>
struct AchievedFraction {
  T clock;
  T bandwidth;
};

enum class Algorithm : std::uint16_t {  // as wide as what else is in a Choice: it has no gaps
  none,
  gemm,
  split_k,
  implicit_gemm,
  group_tiles,
  col2im,
  winograd,
  winograd_nonfused,
  fft_tiling,
  direct,
  attention,
  recurrent,
  stream
};
inline constexpr std::array<std::string_view, 13> kAlgorithmNames = {"",
                                                                     "gemm",
                                                                     "split_k",
                                                                     "implicit_gemm",
                                                                     "group_tiles",
                                                                     "col2im",
                                                                     "winograd",
                                                                     "winograd_nonfused",
                                                                     "fft_tiling",
                                                                     "direct",
                                                                     "attention",
                                                                     "recurrent",
                                                                     "stream"};

[[nodiscard]] constexpr std::string_view name_of(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

// A library's choice for a call.
struct Choice {
  Algorithm algorithm = Algorithm::none;
  std::uint16_t tile_m = 0, tile_n = 0;
  std::uint16_t splits = 1;
};

template <class T>
struct TimeParts {
  T compute;   // seconds if only arithmetic limited it
  T memory;    // seconds if only bandwidth limited it
  T overhead;  // seconds of start-up and of reducing splits
  T total;
};

// Coordinates in which calls of one group lie near one another: logarithms (base 2) of sizes.
struct Features {
  std::uint64_t group = 0;  // calls of different groups are never neighbours: pass, transposes, filter
  static constexpr std::size_t kMost = 5;
  int count = 0;
  std::array<double, kMost> x{};
};

// sqrt(a^2 + b^2): a smooth maximum of two times that overlap, at most 41 % above the larger one (where they
// are equal).
template <class T>
[[nodiscard]] T smooth_max(const T& a, const T& b) {
  using std::sqrt;
  return sqrt(a * a + b * b);
}

template <class Family>
inline constexpr std::size_t kParameterCount = Family::parameters.size();

template <class Family>
struct Estimate {
  Choice choice;
  TimeParts<double> parts{0, 0, 0, std::numeric_limits<double>::infinity()};

  void keep_faster(const Choice& other, const TimeParts<double>& its_parts) {
    if (its_parts.total < parts.total) *this = {other, its_parts};
  }
};

template <class Family>
concept HasGrids = requires(const Hardware& hardware, std::span<const double> p) {
  Family::grid_work(hardware, p);
};

// The fastest choice of a family that has grids. `grids`: Family::grid_work() or a table of it.
template <class Family, class Grids>
[[nodiscard]] Estimate<Family> kernel_time(const typename Family::Call& call, const Hardware& hardware,
                                           const AchievedFraction<double>& sustained,
                                           std::span<const double> p, const Grids& grids) {
  Estimate<Family> best;
  const typename Family::Sizes& sizes = call;
  Family::for_each_time(
      sizes, hardware, sustained, p, grids,
      [&](const Choice& choice, const TimeParts<double>& parts) { best.keep_faster(choice, parts); });
  return best;
}

// The fastest choice.
template <class Family>
[[nodiscard, gnu::always_inline]] inline Estimate<Family> kernel_time(
    const typename Family::Call& call, const Hardware& hardware, const AchievedFraction<double>& sustained,
    std::span<const double> p) {
  if constexpr (HasGrids<Family>) {
    return kernel_time<Family>(call, hardware, sustained, p, Family::grid_work(hardware, p));
  } else {
    Estimate<Family> best;
    const typename Family::Sizes& sizes = call;
    Family::for_each_choice(sizes, hardware, [&](const Choice& choice) {
      best.keep_faster(choice, Family::template time<double>(sizes, choice, hardware, sustained, p));
    });
    return best;
  }
}

}  // namespace tbdsim
