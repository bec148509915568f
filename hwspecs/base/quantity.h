// Quantities as types: `Bytes + Flops` does not compile, `Flops / FlopsPerSecond` is Seconds.
// Inside, everything is SI: bytes, flops, seconds, joules, US dollars. Units are read and printed by
// quantity_text only.
#pragma once

#include <compare>

namespace tbdsim {

// Exponents of the base units; flop is work (a multiply-add is 2), never a rate.
struct Dimension {
  int byte = 0;
  int flop = 0;
  int second = 0;
  int joule = 0;
  int dollar = 0;

  friend constexpr bool operator==(const Dimension&, const Dimension&) = default;
  friend constexpr Dimension operator+(const Dimension& a, const Dimension& b) {
    return {a.byte + b.byte, a.flop + b.flop, a.second + b.second, a.joule + b.joule, a.dollar + b.dollar};
  }
  friend constexpr Dimension operator-(const Dimension& a, const Dimension& b) {
    return {a.byte - b.byte, a.flop - b.flop, a.second - b.second, a.joule - b.joule, a.dollar - b.dollar};
  }
};

// A number with a dimension. Rep is double for predicting; a fit may use an automatic-differentiation scalar.
template <Dimension D, class Rep = double>
class Quantity {
 public:
  static constexpr Dimension dimension = D;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep si) : si_(si) {}

  // The number in SI base units.
  [[nodiscard]] constexpr const Rep& si() const { return si_; }

  constexpr Quantity& operator+=(const Quantity& other) { return si_ += other.si_, *this; }
  constexpr Quantity& operator-=(const Quantity& other) { return si_ -= other.si_, *this; }
  friend constexpr Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }
  friend constexpr Quantity operator*(const Quantity& a, const Rep& b) { return Quantity(a.si_ * b); }
  friend constexpr Quantity operator*(const Rep& a, const Quantity& b) { return Quantity(a * b.si_); }
  friend constexpr Quantity operator/(const Quantity& a, const Rep& b) { return Quantity(a.si_ / b); }
  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;

 private:
  Rep si_{};
};

namespace detail {
// A quantity of dimension D, or the bare number where nothing is left of the units.
template <Dimension D, class Rep>
constexpr auto of_dimension(const Rep& si) {
  if constexpr (D == Dimension{}) {
    return si;
  } else {
    return Quantity<D, Rep>(si);
  }
}
}  // namespace detail

template <Dimension A, class RepA, Dimension B, class RepB>
[[nodiscard]] constexpr auto operator*(const Quantity<A, RepA>& a, const Quantity<B, RepB>& b) {
  return detail::of_dimension<A + B>(a.si() * b.si());
}
template <Dimension A, class RepA, Dimension B, class RepB>
[[nodiscard]] constexpr auto operator/(const Quantity<A, RepA>& a, const Quantity<B, RepB>& b) {
  return detail::of_dimension<A - B>(a.si() / b.si());
}

using Bytes = Quantity<Dimension{.byte = 1}>;
using Flops = Quantity<Dimension{.flop = 1}>;
using Seconds = Quantity<Dimension{.second = 1}>;
using Hertz = Quantity<Dimension{.second = -1}>;
using BytesPerSecond = Quantity<Dimension{.byte = 1, .second = -1}>;
using FlopsPerSecond = Quantity<Dimension{.flop = 1, .second = -1}>;
using Joules = Quantity<Dimension{.joule = 1}>;
using Watts = Quantity<Dimension{.second = -1, .joule = 1}>;
using Dollars = Quantity<Dimension{.dollar = 1}>;
using DollarsPerSecond = Quantity<Dimension{.second = -1, .dollar = 1}>;

// Factors of unit prefixes, for the few places that calculate in other units than SI base units.
inline constexpr double kNano = 1e-9;
inline constexpr double kMicro = 1e-6;
inline constexpr double kMilli = 1e-3;
inline constexpr double kGiga = 1e9;
inline constexpr double kMebi = 1024 * 1024;

}  // namespace tbdsim
