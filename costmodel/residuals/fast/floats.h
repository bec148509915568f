// Four numbers of single precision at once, as any processor with vectors has them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tbdsim {

inline constexpr std::size_t kFloats = 4;
using Floats = float __attribute__((vector_size(kFloats * sizeof(float))));
using Ints = std::int32_t __attribute__((vector_size(kFloats * sizeof(std::int32_t))));

[[nodiscard]] inline float least_of(Floats x) { return std::min(std::min(x[0], x[1]), std::min(x[2], x[3])); }
[[nodiscard]] inline float most_of(Floats x) { return std::max(std::max(x[0], x[1]), std::max(x[2], x[3])); }
[[nodiscard]] inline float sum_of(Floats x) { return (x[0] + x[1]) + (x[2] + x[3]); }

[[nodiscard]] inline Floats root_of(Floats x) {
  return Floats{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])};
}

// e^x, of what is not above 0, to 3e-7 of it; below -87 e^-87. 2^n e^r, |r| <= ln 2 / 2, by its series.
[[nodiscard]] inline Floats exponential(Floats x) {
  constexpr float kLeast = -87, kLog2E = 1.44269504F;
  constexpr float kLn2 = 0.693359375F, kLn2Rest = -2.12194440e-4F;
  constexpr float kWhole = 0x1.8p23F;  // added, only the digits before the point are left, in the lowest bits
  constexpr int kExponentBit = 23;
  constexpr std::array<float, 8> kInverseFactorials = {1,        1,         1.F / 2,   1.F / 6,
                                                       1.F / 24, 1.F / 120, 1.F / 720, 1.F / 5040};
  x = x > kLeast ? x : Floats{} + kLeast;
  const Floats shifted = x * kLog2E + kWhole;
  const Floats n = shifted - kWhole;
  const Floats r = (x - n * kLn2) - n * kLn2Rest;
  const Floats square = r * r;
  Floats even{}, odd{};  // two short chains instead of a long one
  for (std::size_t i = kInverseFactorials.size(); i > 0; i -= 2) {
    odd = odd * square + kInverseFactorials[i - 1];
    even = even * square + kInverseFactorials[i - 2];
  }
  const Floats sum = even + r * odd;
  return (Floats)((Ints)sum + ((Ints)shifted << kExponentBit));
}

}  // namespace tbdsim
