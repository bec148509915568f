// For functions that go through arrays: compiled a second time for processors with vectors of four doubles,
// which the program finds out when it starts. Results are the same bits, for multiplications and additions
// stay apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define TBDSIM_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define TBDSIM_WIDE_VECTORS
#endif

namespace tbdsim {

// Operators work on each of the numbers; where the processor has no such vectors, on two at a time.
inline constexpr std::size_t kLanes = 4;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
using Integers = std::int64_t __attribute__((vector_size(kLanes * sizeof(std::int64_t))));

[[gnu::always_inline]] inline double least_of(const Doubles& x) {
  return std::min(std::min(x[0], x[1]), std::min(x[2], x[3]));
}
[[gnu::always_inline]] inline double most_of(const Doubles& x) {
  return std::max(std::max(x[0], x[1]), std::max(x[2], x[3]));
}

// x -> e^x, of what is not above 0, to 3e-16 of it; below -700 e^-700. 2^n e^r, |r| <= ln 2 / 2, by its
// series.
[[gnu::always_inline]] inline void exponentiate(Doubles& x) {
  constexpr double kLeast = -700, kLog2E = 1.4426950408889634;
  constexpr double kLn2 = 6.93147180369123816490e-01, kLn2Rest = 1.90821492927058770002e-10;
  constexpr double kWhole = 0x1.8p52;  // added, only the digits before the point are left, in the lowest bits
  constexpr int kExponentBit = 52;
  constexpr std::size_t kTerms = 14;
  constexpr auto kInverseFactorials = [] {
    std::array<double, kTerms> terms{1};
    for (std::size_t i = 1; i < kTerms; ++i) terms[i] = terms[i - 1] / static_cast<double>(i);
    return terms;
  }();
  x = x > kLeast ? x : Doubles{} + kLeast;
  const Doubles shifted = x * kLog2E + kWhole;
  const Doubles n = shifted - kWhole;
  const Doubles r = (x - n * kLn2) - n * kLn2Rest;
  const Doubles square = r * r;
  Doubles even{}, odd{};  // two short chains instead of a long one
  for (std::size_t i = kTerms; i > 0; i -= 2) {
    odd = odd * square + kInverseFactorials[i - 1];
    even = even * square + kInverseFactorials[i - 2];
  }
  const Doubles sum = even + r * odd;
  x = (Doubles)((Integers)sum + ((Integers)shifted << kExponentBit));
}

}  // namespace tbdsim
