// The times of a training step's kernels on one GPU. Pure functions of kernel, batch and calibration.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "costmodel/calibration.h"
#include "costmodel/kernel_cost.h"
#include "graphs/same_kernels.h"
#include "graphs/training_step.h"

namespace tbdsim {

class EstimateCache;  // residuals/fast/estimate_cache.h

// Libraries that may compute a convolution in TF32 also try their fp32 kernels. With Winograd's algorithm, or
// because they need no layout conversions to NHWC, these win on GPUs whose tensor cores do TF32 at the rate
// of their fp32 lanes (GA102, AD102). In a step the conversions then take no time: they are not made. Throws
// UsageError when the GPU has no rate for the kernel's arithmetic.
[[nodiscard]] KernelCost estimate(const Kernel& kernel, double batch, const Calibration& calibration);

// For each kind of kernel the factor by which a framework's own kernels, or the versions of its libraries,
// take longer than the calibration predicts.
using KernelFactors = std::array<double, kKernelKindCount>;
[[nodiscard]] constexpr KernelFactors no_factors() {
  KernelFactors factors{};
  factors.fill(1);
  return factors;
}

// The cost of a kernel that is the same at every batch, such as the update of a parameter.
struct FixedCost {
  std::size_t kernel = 0;
  KernelCost cost;
};
// All such kernels of the step but duplicates of earlier ones, in order. A sweep over batches computes them
// once, which saves up to 4 % of a prediction of ResNet-50.
[[nodiscard]] std::vector<FixedCost> fixed_costs(const TrainingStep& step, const Calibration& calibration,
                                                 const KernelFactors& factors = no_factors());

// One cost for each kernel of the step. `fixed`: costs from fixed_costs(), or none. A cache makes estimates
// at other batches faster and changes no number.
[[nodiscard]] std::vector<KernelCost> estimate(const TrainingStep& step, double batch,
                                               const Calibration& calibration,
                                               const KernelFactors& factors = no_factors(),
                                               std::span<const FixedCost> fixed = {},
                                               EstimateCache* cache = nullptr);

// Standard deviation of ln(time) of kernels that run one after another. A share c = 0.18 of the variance is
// common to all kernels of a kind, so that their deviations add; the rest is independent, as are kinds:
//
//   sd = sqrt( c * sum over kinds (sum of t * s)^2 + (1 - c) * sum over kernels (t * s)^2 ) / sum of t
//
// t: seconds of a kernel with all its repeats; s: KernelCost::sd. `runs`: kernel_runs() of the kernels.
[[nodiscard]] double combined_sd(const TrainingStep& step, std::span<const KernelRuns> runs,
                                 const std::vector<KernelCost>& costs);

}  // namespace tbdsim
