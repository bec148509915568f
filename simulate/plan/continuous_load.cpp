#include "simulate/plan/continuous_load.h"

#include <limits>

#include "costmodel/hardware.h"
#include "costmodel/power.h"

namespace tbdsim {
namespace {

// Watts for each SM and GHz that a run without a pause draws at the whole clock.
struct ContinuousPower {
  double least_capability;
  double sixteen_bits;
  double eight_bits;  // and four, of which too few runs are known; Ampere has none: as 16 bits
};
constexpr ContinuousPower kGenerations[] = {{10, 16.2, 15.4}, {9, 8.15, 10.46}, {8, 5.87, 5.87}};

}  // namespace

FlopsPerSecond continuous_rate(const GpuSpec& gpu, MathType math) {
  for (const auto& generation : kGenerations) {
    if (gpu.compute_capability < generation.least_capability || !has_tensor_cores(gpu, math)) continue;
    const bool narrow = math == MathType::fp8 || math == MathType::fp4;
    const double watts = narrow ? generation.eight_bits : generation.sixteen_bits;
    return rate_of(gpu, math).peak * clock_of_power(watts_of_each(gpu, math), watts);
  }
  return FlopsPerSecond(std::numeric_limits<double>::infinity());
}

}  // namespace tbdsim
