// The cost of one kernel by its family's formula, or else by the roofline; used by estimate.cpp and
// fast/rate_cache.cpp.
#pragma once

#include <vector>

#include "costmodel/calibration.h"
#include "costmodel/estimate.h"
#include "costmodel/families/families.h"
#include "costmodel/kernel_cost.h"
#include "costmodel/residuals/residual_index.h"
#include "graphs/training_step.h"

namespace tbdsim {

// The place of a call in its group of the residual table.
struct ResidualPoint {
  const ResidualIndex::Group* group = nullptr;  // null: no call of its group was measured
  Features at;
};

// Functions below write into `cost` instead of returning it: a copy right after the write stalls on
// store-to-load forwarding.
void set_cost(const Choice& choice, const TimeParts<double>& parts, double workspace, KernelCost& cost);

struct FormulaModel {
  const FamilyModel* family = nullptr;  // null: the profile has none, and the cost is complete
  double limit = 0;                     // seconds, physical_limit.h
};

// Writes the cost by the family's formula in the arithmetic `math`, without residuals; by the roofline where
// there is no model of the family, and for transfers. `point`: filled in unless null. Throws UsageError when
// the GPU has no rate for the arithmetic.
FormulaModel estimate_by_formula(const Kernel& kernel, MathType math, double batch,
                                 const Calibration& calibration, ResidualPoint* point, KernelCost& cost);

// Multiplies all times by the factor, or by a larger one where the total would be below the limit (seconds).
void scale_within(KernelCost& cost, double factor, double limit);

// True for recurrent layers of fewer than 1024 sequences, and GEMMs whose size that grows with the batch is
// below 128, the widest tile: they take no longer than with a larger batch (cost_by_width.h).
[[nodiscard]] bool takes_time_of_wider(const Kernel& kernel, double batch);

// Writes the cost with residual and deviation. `factor`: the framework's for this
// kind of kernel; `copies`: time of the layout conversions before a convolution in TF32; `number`: the
// kernel's in its step.
void estimate_kernel(const Kernel& kernel, double batch, const Calibration& calibration, double factor,
                     Seconds copies, KernelCost& cost, std::size_t number = 0,
                     EstimateCache* cache = nullptr);

// True for arithmetic that may run in fp32 instead, which makes the layout conversions before it unnecessary.
[[nodiscard]] inline bool may_need_copies(const Kernel& kernel) { return kernel.math == MathType::tf32; }

// Sum of the times of the layout conversions right before kernel k.
[[nodiscard]] Seconds time_of_copies(const TrainingStep& step, const std::vector<KernelCost>& costs,
                                     std::size_t k);
// Sets their times to 0 if kernel k runs in fp32, which needs none.
void leave_out_copies(const TrainingStep& step, std::size_t k, std::vector<KernelCost>& costs);

// Writes the cost of kernel k of the step, a duplicate or not, and those of the layout conversions before it.
void estimate_anew(const TrainingStep& step, std::size_t k, double batch, const Calibration& calibration,
                   const KernelFactors& factors, std::vector<KernelCost>& costs);

// Fills in `costs`, one for each kernel of the step. write(k, copies, cost) writes that of kernel k;
// duplicates are copied.
template <class Write>
void estimate_kernels(const TrainingStep& step, std::vector<KernelCost>& costs, Write write) {
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    if (kernel.duplicate_of >= 0) {
      costs[k] = costs[static_cast<std::size_t>(kernel.duplicate_of)];
    } else {
      const Seconds copies = may_need_copies(kernel) ? time_of_copies(step, costs, k) : Seconds(0);
      write(k, copies, costs[k]);
    }
    if (may_need_copies(kernel)) leave_out_copies(step, k, costs);
  }
}

}  // namespace tbdsim
