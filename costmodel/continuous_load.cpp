#include "costmodel/continuous_load.h"

#include <algorithm>
#include <array>
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
constexpr ContinuousPower kAmpere{7, 5.87, 5.87};
constexpr std::array kGenerations = {ContinuousPower{12, kAmpere.sixteen_bits, kAmpere.eight_bits},
                                     ContinuousPower{10, 16.2, 15.4}, ContinuousPower{9, 8.15, 10.46},
                                     kAmpere};

// Share of the power below which fewer SMs at a higher clock do more: where n * cbrt(w / n - 0.15) is largest
// over the number n of SMs.
constexpr double kLeastShare = 1.5 * kPowerBesideClock;

double sustained_clock(double share_of_power) {
  const double least = std::max(share_of_power, kLeastShare);
  return clock_of_power(least, 1) * std::min(1.0, share_of_power / least);
}

}  // namespace

FlopsPerSecond continuous_rate(const GpuSpec& gpu, MathType math) {
  if (!has_tensor_cores(gpu, math) || gpu.tdp == Watts(0))
    return FlopsPerSecond(std::numeric_limits<double>::infinity());
  const auto& generation = *std::find_if(kGenerations.begin(), kGenerations.end(), [&](const auto& from) {
    return gpu.compute_capability >= from.least_capability;
  });
  const bool narrow = math == MathType::fp8 || math == MathType::fp4;
  const double watts = (narrow ? generation.eight_bits : generation.sixteen_bits) * rate_share(gpu, math);
  return rate_of(gpu, math).peak * std::min(1.0, sustained_clock(watts_of_each(gpu, math) / watts));
}

Seconds least_continuous_time(const Kernel& kernel, const KernelCost& cost, double batch,
                              const GpuSpec& gpu) {
  if (kernel.kind != KernelKind::gemm || !cost.runs() || !has_tensor_cores(gpu, cost.math)) return {};
  return Seconds(kernel.flops.at(batch) / continuous_rate(gpu, cost.math).si());
}

void limit_to_continuous_rate(const TrainingStep& step, double batch, const GpuSpec& gpu,
                              std::vector<KernelCost>& costs) {
  if (!has_tensor_cores(gpu, MathType::fp16)) return;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    KernelCost& cost = costs[k];
    if (cost.math == MathType::fp32) continue;  // no tensor cores
    const Seconds least = least_continuous_time(step.kernels[k], cost, batch, gpu);
    if (least <= cost.total) continue;
    cost.compute = cost.total = least;
    cost.bound = Bound::compute;
  }
}

}  // namespace tbdsim
