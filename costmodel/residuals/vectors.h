// Four floating-point numbers of type T that one instruction works on (GCC and Clang vector extensions):
// operators apply to each of the four.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tbdsim {

inline constexpr std::size_t kLanes = 4;

template <class T>
struct VectorOf {
  using Type __attribute__((vector_size(kLanes * sizeof(T)))) = T;
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
[[nodiscard]] T sum(const Vector<T>& x) {
  return (x[0] + x[1]) + (x[2] + x[3]);
}

// Replaces each number by e to its power. Precondition: none is above 0. The float version has a relative
// error of at most 3e-7 and returns e^-87 below -87: e^x = 2^n * e^r with n = round(x / ln 2), so |r| <= ln 2
// / 2, and e^r is its Taylor polynomial of degree 7.
inline void exponentiate(Vector<float>& x) {
  constexpr float kLowest = -87;
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;  // their sum is ln 2
  constexpr float kRound = 0x1.8p23F;  // adding it rounds to an integer, which is then in the lowest bits
  constexpr int kExponentBit = 23;
  constexpr std::array<float, 8> kInverseFactorials = {1,        1,         1.F / 2,   1.F / 6,
                                                       1.F / 24, 1.F / 120, 1.F / 720, 1.F / 5040};
  using Integers = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));
  x = x > kLowest ? x : Vector<float>{} + kLowest;
  const Vector<float> shifted = x * kLog2E + kRound;
  const Vector<float> n = shifted - kRound;
  const Vector<float> r = (x - n * kLn2High) - n * kLn2Low;
  const Vector<float> square = r * r;
  Vector<float> even{}, odd{};  // two dependency chains of half the length
  for (std::size_t i = kInverseFactorials.size(); i > 0; i -= 2) {
    odd = odd * square + kInverseFactorials[i - 1];
    even = even * square + kInverseFactorials[i - 2];
  }
  const Vector<float> polynomial = even + r * odd;
  x = (Vector<float>)((Integers)polynomial + ((Integers)shifted << kExponentBit));
}
inline void exponentiate(Vector<double>& x) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) x[lane] = std::exp(x[lane]);
}

}  // namespace tbdsim
