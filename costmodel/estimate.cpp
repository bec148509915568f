#include "costmodel/estimate.h"

#include <cmath>

#include "costmodel/kernel_estimate.h"
#include "costmodel/step_power.h"

namespace tbdsim {

KernelCost estimate(const Kernel& kernel, double batch, const Calibration& calibration) {
  KernelCost cost;
  estimate_kernel(kernel, batch, calibration, 1, Seconds(0), cost);
  limit_by_power(kernel, batch, calibration, cost);
  return cost;
}

std::vector<FixedCost> fixed_costs(const TrainingStep& step, const Calibration& calibration,
                                   const KernelFactors& factors) {
  std::vector<FixedCost> fixed;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    // Sizes are affine in the batch: calls that are equal at two batches are equal at all.
    if (kernel.duplicate_of >= 0 || may_need_copies(kernel) || call_of(kernel, 1) != call_of(kernel, 2))
      continue;
    KernelCost& cost = fixed.emplace_back(FixedCost{k, {}}).cost;
    estimate_kernel(kernel, 1, calibration, factors[index_of(kernel.kind)], Seconds(0), cost);
  }
  return fixed;
}

std::vector<KernelCost> estimate(const TrainingStep& step, double batch, const Calibration& calibration,
                                 const KernelFactors& factors, std::span<const FixedCost> fixed,
                                 EstimateCache* cache) {
  std::vector<KernelCost> costs(step.kernels.size());
  auto known = fixed.begin();
  estimate_kernels(step, costs, [&](std::size_t k, Seconds copies, KernelCost& cost) {
    if (known != fixed.end() && known->kernel == k) {
      cost = (known++)->cost;
      return;
    }
    const Kernel& kernel = step.kernels[k];
    estimate_kernel(kernel, batch, calibration, factors[index_of(kernel.kind)], copies, cost, k, cache);
  });
  return costs;
}

double combined_sd(const TrainingStep& step, std::span<const KernelRuns> runs,
                   const std::vector<KernelCost>& costs) {
  // Chosen so that the 80 % interval holds about 80 % of the measured runs of split `fit` with models that
  // the fit left out, whose errors are a fifth above those of fitted rows.
  constexpr double kCommon = 0.18;
  std::array<double, kKernelKindCount> by_kind{};
  double time = 0, independent = 0;
  for (const auto& [k, times, squares] : runs) {
    const double seconds = costs[k].total.si();
    const double deviation = seconds * costs[k].sd;
    time += seconds * static_cast<double>(times);
    by_kind[index_of(step.kernels[k].kind)] += deviation * static_cast<double>(times);
    independent += deviation * deviation * squares;
  }
  double common = 0;
  for (const double deviation : by_kind) common += deviation * deviation;
  return time > 0 ? std::sqrt(kCommon * common + (1 - kCommon) * independent) / time : 0;
}

}  // namespace tbdsim
