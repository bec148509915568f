#include "costmodel/estimate.h"

#include <cmath>

#include "costmodel/kernel_estimate.h"

namespace tbdsim {

KernelCost estimate(const Kernel& kernel, double batch, const Calibration& calibration) {
  KernelCost cost;
  scale(cost, estimate_kernel(kernel, batch, calibration, Seconds(0), cost));
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
    const double factor = estimate_kernel(kernel, 1, calibration, Seconds(0), cost);
    scale(cost, factor * factors[index_of(kernel.kind)]);
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
      return 1.0;
    }
    const Kernel& kernel = step.kernels[k];
    const double factor = estimate_kernel(kernel, batch, calibration, copies, cost, k, cache);
    return factor * factors[index_of(kernel.kind)];
  });
  return costs;
}

double combined_sd(const TrainingStep& step, std::span<const KernelRuns> runs,
                   const std::vector<KernelCost>& costs) {
  // Chosen on measured runs of split `fit`: errors of models that a fit leaves out, a fifth above those of
  // its own rows, lie within the 80 % interval in some 80 % of them.
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
