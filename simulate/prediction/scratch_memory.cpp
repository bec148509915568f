#include "simulate/prediction/scratch_memory.h"

#include <algorithm>
#include <utility>

#include "costmodel/kernel_estimate.h"
#include "simulate/memory/fragments.h"
#include "simulate/prediction/sync_memory.h"

namespace tbdsim {
namespace {

MemoryPlan plan_of(const Prediction& p, std::size_t length, const OutlinedStep& of, double samples,
                   const std::vector<KernelCost>& costs) {
  const auto& [step, memory] = of;
  MemoryPlan plan = plan_memory(memory, step, costs, samples, *p.framework, p.device_memory);
  if (p.framework->allocator.static_plan) {
    const double scale = samples / static_cast<double>(p.batches[length]);
    plan.use[MemoryCategory::feature_maps] += p.library_state_beside(length) * scale;
  }
  const MemoryPlan alone = plan;
  add_sync_memory(p, step, samples, plan);
  plan.fragments = fragments_of(alone, step, costs, samples, *p.framework, p.usable_memory(),
                                plan.total() - alone.total());
  return plan;
}

// Bytes of tensors at the kernel at which most is alive.
Bytes most_alive(const MemoryOutline& memory, double samples) {
  Bytes most;
  for (const MemoryOutline::Alive& peak : memory.peaks) most = std::max(most, Bytes(peak.all.at(samples)));
  return most;
}

// The costs with the fastest algorithms of convolutions that leave room for the tensors alive beside their
// scratch memory: together at most `room`.
std::vector<KernelCost> within(Bytes room, const Prediction& p, const OutlinedStep& of, double samples,
                               std::vector<KernelCost> costs, Calibration calibration) {
  for (const MemoryOutline::Alive& convolution : of.memory.convolutions) {
    const auto k = static_cast<std::size_t>(convolution.kernel);
    const Bytes left = std::max(room - Bytes(convolution.all.at(samples)), Bytes(1));  // 0: any
    if (costs[k].workspace <= left) continue;
    for (ConvLimits& limits : calibration.conv_limits) limits.workspace = left.si();
    estimate_anew(of.step, k, samples, calibration, p.factors, costs);
  }
  return costs;
}

}  // namespace

MemoryPlan fit_scratch(const Prediction& p, std::size_t length, const OutlinedStep& of, double samples,
                       std::vector<KernelCost>& costs) {
  MemoryPlan plan = plan_of(p, length, of, samples, costs);
  const Bytes usable = p.usable_memory();
  const Allocator& allocator = p.framework->allocator;
  if (!allocator.scratch_as_fits || allocator.static_plan || plan.needed() <= usable) return plan;
  plan = plan_of(p, length, of, samples, std::vector<KernelCost>(costs.size()));
  plan.scratch_limited = true;
  if (plan.needed() > usable) {
    for (KernelCost& cost : costs) cost.workspace = {};
    return plan;
  }
  const Bytes room = usable - plan.total() + most_alive(of.memory, samples);
  costs = within(room, p, of, samples, std::move(costs), *p.calibration);
  plan = plan_of(p, length, of, samples, costs);
  plan.fragments = std::min(plan.fragments, std::max(Bytes(), usable - plan.total()));
  plan.scratch_limited = true;
  return plan;
}

MemoryPlan fit_scratch(const Prediction& p, std::size_t length, double samples,
                       std::vector<KernelCost>& costs) {
  const LengthStep& step = (*p.steps)[length];
  return fit_scratch(p, length, {step.step, step.memory}, samples, costs);
}

}  // namespace tbdsim
