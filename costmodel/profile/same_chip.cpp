#include "costmodel/profile/same_chip.h"

#include <algorithm>
#include <cmath>

namespace tbdsim {

bool have_same_chip(const GpuSpec& a, const GpuSpec& b) {
  constexpr double kOtherCooling = 2;
  const auto [least, most] = std::minmax(a.tdp.si(), b.tdp.si());
  return a.architecture == b.architecture && a.compute_capability == b.compute_capability &&
         a.sm_count == b.sm_count && most < kOtherCooling * least;
}

double distance_between_boards(const GpuSpec& a, const GpuSpec& b) {
  return std::abs(std::log(a.memory_bandwidth / b.memory_bandwidth)) + std::abs(std::log(a.tdp / b.tdp));
}

}  // namespace tbdsim
