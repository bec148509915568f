// log2 of sizes of layers. Small whole numbers, which most sizes are, come from a table.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace tbdsim {

inline constexpr std::size_t kSmallSizes = 4'096;
extern const std::array<double, kSmallSizes> kLog2OfSize;  // of 0, 1, 2, ...; known when the program starts

// log2(size) for size >= 0, to the last bit or the one before.
[[nodiscard]] inline double log2_of_size(double size) {
  if (size < static_cast<double>(kSmallSizes)) {
    const auto whole = static_cast<std::size_t>(size);
    if (static_cast<double>(whole) == size) return kLog2OfSize[whole];
  }
  return std::log2(size);
}

}  // namespace tbdsim
