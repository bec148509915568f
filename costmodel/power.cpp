#include "costmodel/power.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "costmodel/hardware.h"

namespace tbdsim {
namespace {

// flops_per_joule: lane_limit (hardware.h).
//
// full_board: V100 SXM2, 300 W, 80 SMs, 1.53 GHz; RTX 2080 Ti, 250 W, 68, 1.545; A100 SXM, 400 W, 108, 1.41;
// H100 SXM, 700 W, 132, 1.83; RTX 4090, 450 W, 128, 2.52. Smaller boards may have more. Blackwell: of the
// board that has the least, B200, 1000 W, 148, 1.856, since three of them sustain one clock (1.44 to 1.46 GHz
// in bf16 on B200, B300 and GB200: stas00/ml-engineering, largest achieved products); of 12.x RTX PRO 6000
// Max-Q, 300 W, 188, 2.28.
//
// sixteen_bits, eight_bits: fitted to the `fit` rows of runs of several training stacks on A100, H100 and
// B200 (docs/model/clusters.md). These are 2.9 pJ a flop on Ampere (7 nm) and 2.0 on Hopper and Blackwell (4
// nm); GPUs of 8.9 and 12.x, 4 nm too and 2,048 flop a clock and SM at the full rate, are taken as Hopper's
// for each flop, SMs of Volta and Turing (12 nm) as Ampere's, which lowers the errors of BERT and GNMT on
// V100 and Quadro RTX 8000 (docs/model/kernel_times.md).
constexpr PowerOfInstructions kPower[] = {
    {"kepler", 57 * kGiga, 0},
    {"maxwell", 57 * kGiga, 0},
    {"pascal", 57 * kGiga, 0},
    {"volta", 77 * kGiga, 2.45, 5.87, 5.87},
    {"turing", 57 * kGiga, 2.38, 5.87, 5.87},
    {"ampere", 77 * kGiga, 2.63, 5.87, 5.87},
    {"ada", 126 * kGiga, 1.39, 8.15 / 2, 10.46 / 2},
    {"hopper", 77 * kGiga, 2.89, 8.15, 10.46},
    {"blackwell", 126 * kGiga, 3.64, 16.2, 15.4},
    {"rtx_blackwell", 126 * kGiga, 0.7, 8.15 / 2, 10.46 / 2},
    {"", 57 * kGiga, 0},  // of an architecture that has no row
};

}  // namespace

std::string_view instructions_of(const GpuSpec& gpu) {
  constexpr double kRtxBlackwell = 12;
  if (gpu.architecture == "blackwell" && gpu.compute_capability >= kRtxBlackwell) return "rtx_blackwell";
  return gpu.architecture;
}

const PowerOfInstructions& power_of(const GpuSpec& gpu) {
  const std::string_view instructions = instructions_of(gpu);
  const auto* const row = std::ranges::find(kPower, instructions, &PowerOfInstructions::instructions);
  return row == std::end(kPower) ? *std::prev(row) : *row;
}

double power_over_products(const GpuSpec& gpu, MathType math) {
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  if (!has_tensor_cores(gpu, math)) return kUnlimited;
  const MathType computed = gpu.computes_in[index_of(math)].value_or(math);
  const bool narrow = computed == MathType::fp8 || computed == MathType::fp4;
  const PowerOfInstructions& power = power_of(gpu);
  const double full = (narrow ? power.eight_bits : power.sixteen_bits) * rate_share(gpu, math);
  return full == 0 ? kUnlimited : watts_of_each(gpu, math) / full;
}

}  // namespace tbdsim
