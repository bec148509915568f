// Simpler models of other tools, as families over the calls of another family, for comparison on the same
// folds.
#pragma once

#include "costmodel/families/kernel_time.h"

namespace tbdsim {

// time = flops / (share * peak): Paleo (Qi, Sparks and Talwalkar, ICLR 2017).
template <class Family>
struct ConstantShare {
  using Call = typename Family::Call;
  using Sizes = Call;
  static constexpr std::string_view name = "constant";
  static constexpr auto parameters =
      std::to_array<Parameter>({{"share", 0.5, 1e-4, 2, "", "of the sustained peak", 3}});

  template <class Visit>
  static void for_each_choice(const Call&, const Hardware&, Visit visit) {
    visit(Choice{});
  }
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice&, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p) {
    const T total = std::max(Family::flops(call), 1.0) / (hardware.peak * sustained.clock * p[0]);
    return {total, T(0), T(0), total};
  }
  static Features features(const Call& call) { return Family::features(call); }
};

// time = overhead + max(flops / (compute * peak), bytes / (bandwidth share * bandwidth)).
template <class Family>
struct PlainRoofline {
  using Call = typename Family::Call;
  using Sizes = Call;
  static constexpr std::string_view name = "roofline";
  static constexpr auto parameters =
      std::to_array<Parameter>({{"compute", 0.8, 0.01, 2, "", "share of the sustained peak"},
                                {"bandwidth", 0.7, 0.01, 2, "", "share of the memory bandwidth"},
                                {"overhead", 5e-6, 1e-7, 1e-3, "s", "each call", 1}});

  template <class Visit>
  static void for_each_choice(const Call&, const Hardware&, Visit visit) {
    visit(Choice{});
  }
  template <class T>
  static TimeParts<T> time(const Call& call, const Choice&, const Hardware& hardware,
                           const AchievedFraction<T>& sustained, std::span<const T> p) {
    const T compute = Family::flops(call) / (hardware.peak * sustained.clock * p[0]);
    const T memory = Family::bytes(call) / (hardware.bandwidth * sustained.bandwidth * p[1]);
    return {compute, memory, p[2], p[2] + (compute > memory ? compute : memory)};
  }
  static Features features(const Call& call) { return Family::features(call); }
};

}  // namespace tbdsim
