#include "simulate/prediction/scratch_memory.h"

#include <algorithm>

#include "simulate/memory/fragments.h"
#include "simulate/prediction/sync_memory.h"

namespace tbdsim {
namespace {

MemoryPlan plan_of(const Prediction& p, std::size_t length, double samples,
                   const std::vector<KernelCost>& costs) {
  const Iteration& iteration = p.iterations[length];
  MemoryPlan plan =
      plan_memory(*iteration.memory, *iteration.step, costs, samples, *p.framework, p.device_memory);
  if (p.framework->allocator.static_plan) {
    const double scale = samples / static_cast<double>(iteration.batch);
    plan.use[MemoryCategory::feature_maps] += p.library_state_beside(length) * scale;
  }
  const MemoryPlan alone = plan;
  add_sync_memory(p, *iteration.step, samples, plan);
  plan.fragments = fragments_of(alone, *iteration.step, costs, samples, *p.framework, p.usable_memory(),
                                plan.total() - alone.total());
  return plan;
}

}  // namespace

std::optional<Calibration> with_scratch_left(const Prediction& p, const Iteration& iteration,
                                             const std::vector<KernelCost>& costs, double batch) {
  if (!p.framework->allocator.scratch_as_fits) return std::nullopt;
  const auto total = [&](const std::vector<KernelCost>& of) {
    return plan_memory(*iteration.memory, *iteration.step, of, batch, *p.framework, p.device_memory).total();
  };
  if (total(costs) <= p.usable_memory()) return std::nullopt;
  const std::vector<KernelCost> without(costs.size());
  const Bytes left = std::max(p.usable_memory() - total(without), Bytes(1));
  Calibration limited = *p.calibration;
  for (ConvLimits& limits : limited.conv_limits) limits.workspace = std::min(limits.workspace, left.si());
  return limited;
}

MemoryPlan memory_of(const Prediction& p, std::size_t length, double samples,
                     const std::vector<KernelCost>& costs) {
  MemoryPlan plan = plan_of(p, length, samples, costs);
  if (!p.framework->allocator.scratch_as_fits || plan.needed() <= p.usable_memory()) return plan;
  return plan_of(p, length, samples, std::vector<KernelCost>(costs.size()));
}

}  // namespace tbdsim
