// One number of type T for each of the nearest rows, kLanes to a vector.
#pragma once

#include <array>
#include <cstddef>

#include "costmodel/residuals/vectors.h"

namespace tbdsim {

inline constexpr std::size_t kMaxNeighbors = 12;
inline constexpr std::size_t kVectors = kMaxNeighbors / kLanes;

template <class T>
struct Lanes : std::array<Vector<T>, kVectors> {
  [[nodiscard]] T at(std::size_t i) const { return (*this)[i / kLanes][i % kLanes]; }
  void set(std::size_t i, double value) { (*this)[i / kLanes][i % kLanes] = static_cast<T>(value); }
};

// The least of them.
template <class T>
[[nodiscard]] T min(const Lanes<T>& x) {
  Vector<T> least = x[0];
  for (const Vector<T>& others : x) least = least < others ? least : others;
  const T low = least[0] < least[1] ? least[0] : least[1];
  const T high = least[2] < least[3] ? least[2] : least[3];
  return low < high ? low : high;
}

}  // namespace tbdsim
