#include "costmodel/residuals/log2_of_size.h"

#include <limits>
#include <numbers>

namespace tbdsim {
namespace {

// size = 2^exponent * m with m near 1, and ln(m) = 2 * atanh(t) with t = (m - 1) / (m + 1): the series
// t + t^3 / 3 + t^5 / 5 + ... to t^27, for |t| <= 0.172. std::log2 is no constant expression before C++26.
constexpr double log2_by_series(std::size_t size) {
  constexpr int kHighestPower = 27;
  if (size == 0) return -std::numeric_limits<double>::infinity();
  auto m = static_cast<long double>(size);
  int exponent = 0;
  while (m > std::numbers::sqrt2_v<long double>) {
    m /= 2;
    ++exponent;
  }
  const long double t = (m - 1) / (m + 1);
  long double sum = 0;
  for (int power = kHighestPower; power >= 1; power -= 2) sum = sum * t * t + 1.0L / power;
  return static_cast<double>(exponent + 2 * t * sum * std::numbers::log2e_v<long double>);
}

}  // namespace

constexpr std::array<double, kSmallSizes> kLog2OfSize = [] {
  std::array<double, kSmallSizes> logarithms{};
  for (std::size_t size = 0; size < kSmallSizes; ++size) logarithms[size] = log2_by_series(size);
  return logarithms;
}();

}  // namespace tbdsim
