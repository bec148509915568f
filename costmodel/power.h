// How a board's power limits the clock of its tensor cores: one rule for kernels that are measured alone, in
// bursts (hardware.h, power_share), and for products of a training step, which runs without a pause.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "costmodel/families/thread_blocks.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// The name of the GPU's instructions: its architecture, but "rtx_blackwell" for Blackwell's GPUs of compute
// capability 12.x. Tensor cores of 12.x are those of 8.x and 8.9 (mma.sync; CUTLASS, include/cutlass/arch),
// those of 10.x have instructions of their own (tcgen05), so that neither runs the other's kernels.
[[nodiscard]] std::string_view instructions_of(const GpuSpec& gpu);

// The power that GPUs of one kind of instructions draw. Sources: power.cpp.
struct PowerOfInstructions {
  std::string_view instructions;
  double flops_per_joule;   // in fp32 (hardware.h, lane_limit)
  double full_board;        // W for each SM and GHz of the largest board; 0: no two boards to compare
  double sixteen_bits = 0;  // W for each SM and GHz that products of 16 bits and TF32 draw in a run without a
                            // pause at the whole clock, of SMs at their generation's full rate; 0: not known
  double eight_bits = 0;    // the same of fp8, also taken for fp4
};

// An architecture without a row has neither limit.
[[nodiscard]] const PowerOfInstructions& power_of(const GpuSpec& gpu);

// The board's power for each SM and GHz of the clock that this arithmetic is quoted at, in W / GHz.
[[nodiscard]] inline double watts_of_each(const GpuSpec& gpu, MathType math) {
  return gpu.tdp.si() / (gpu.sm_count * rate_of(gpu, math).clock.si() / kGiga);
}

// The least power over that of the whole clock at which an SM runs.
inline constexpr double kLeastOfClock = 1.5 * kPowerBesideClock;

// The share of the clock that `watts` sustain, where all of the clock draws `full`: W = full (0.15 + 0.85
// clock^3). Above 1 where there is power to spare. Below 0.225 of `full`, where the rate of all SMs, their
// number times the clock, would fall with further SMs, only so many of them run as have 0.225 each.
[[nodiscard]] inline double clock_of_power(double watts, double full) {
  const double share = watts / full;
  const double each = std::max(kLeastOfClock, share);
  return std::cbrt((each - kPowerBesideClock) / (1 - kPowerBesideClock)) * share / each;
}

// The board's power over what products of this arithmetic draw at the peak in a run without a pause, with
// data that are no zeros; infinite without tensor cores, and where it is not known. Kernels are measured
// alone, in bursts at a higher clock: step_power.h says what a run sustains.
[[nodiscard]] double power_over_products(const GpuSpec& gpu, MathType math);

}  // namespace tbdsim
