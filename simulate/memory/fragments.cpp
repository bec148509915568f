#include "simulate/memory/fragments.h"

#include <algorithm>
#include <cstdint>

#include "simulate/memory/iteration_replay.h"

namespace tbdsim {
namespace {

constexpr double kDecidesFrom = 0.5;  // of the usable memory

bool keeps_segments(const Allocator& allocator) {
  return !allocator.static_plan &&
         (allocator.policy == AllocatorPolicy::caching || allocator.policy == AllocatorPolicy::caching_exact);
}

}  // namespace

Bytes fragments_of(const MemoryPlan& plan, const TrainingStep& step, std::span<const KernelCost> costs,
                   double batch, const Framework& framework, Bytes usable, Bytes others) {
  const Bytes total = plan.total() + others;
  if (!keeps_segments(framework.allocator) || total > usable || total < usable * kDecidesFrom) return {};
  const Bytes room = usable - plan.context - others;
  CachingAllocator allocator(framework.allocator.policy, static_cast<std::uint64_t>(room.si()));
  IterationReplay iterations(step, costs, batch, allocator);
  iterations.allocate_lasting(plan.kept_workspaces);
  for (int i = 0; i < 2; ++i) iterations.run();
  return std::max(Bytes(), allocator.use().reserved - plan.model());
}

}  // namespace tbdsim
