// How a board's power limits the clock of its tensor cores: one rule for kernels measured alone (hardware.h)
// and for runs without a pause (costmodel/continuous_load.h).
#pragma once

#include <algorithm>
#include <cmath>

#include "costmodel/families/thread_blocks.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// The board's power for each SM and GHz of the clock that this arithmetic is quoted at, in W / GHz.
[[nodiscard]] inline double watts_of_each(const GpuSpec& gpu, MathType math) {
  return gpu.tdp.si() / (gpu.sm_count * rate_of(gpu, math).clock.si() / kGiga);
}

// The share of the clock that `watts` sustain, where all of the clock draws `full`: W = full (0.15 + 0.85
// clock^3). Above 1 where there is power to spare.
[[nodiscard]] inline double clock_of_power(double watts, double full) {
  constexpr double kLeast = 0.01;
  return std::cbrt(std::max(kLeast, (watts / full - kPowerBesideClock) / (1 - kPowerBesideClock)));
}

}  // namespace tbdsim
