// Binary logarithms of sizes of layers, which come again and again: small whole numbers are looked up.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace tbdsim {

inline constexpr std::size_t kSmallSizes = 4'096;
inline const std::array<double, kSmallSizes> kLog2OfSize = [] {
  std::array<double, kSmallSizes> logarithms{};
  for (std::size_t size = 0; size < kSmallSizes; ++size)
    logarithms[size] = std::log2(static_cast<double>(size));
  return logarithms;
}();

// The same as std::log2, of sizes that are not negative.
[[nodiscard]] inline double log2_of_size(double size) {
  if (size < static_cast<double>(kSmallSizes)) {
    const auto whole = static_cast<std::size_t>(size);
    if (static_cast<double>(whole) == size) return kLog2OfSize[whole];
  }
  return std::log2(size);
}

}  // namespace tbdsim
