// The residual of one measured call, ln(measured / formula), and an estimate of it for another call.
#pragma once

#include <cstddef>

#include "costmodel/families/kernel_time.h"

namespace tbdsim {

struct ResidualRow {
  Features at;
  double residual = 0;  // ln(measured / formula)
  int call = -1;        // index of the measured call, in the order given
};

struct ResidualEstimate {
  double mean = 0;      // of ln(measured / formula)
  double sd = 0;        // of a new measurement's ln(measured / formula) about the mean
  double distance = 0;  // to the nearest row, in Features::x; infinite: the group has none
};

// Squared Euclidean distance over the coordinates of one group.
[[nodiscard]] inline double squared_distance(const Features& a, const Features& b) {
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count); ++i)
    sum += (a.x[i] - b.x[i]) * (a.x[i] - b.x[i]);
  return sum;
}

}  // namespace tbdsim
