// Memory that an allocator holds but no tensor uses.
#pragma once

#include <span>

#include "costmodel/kernel_cost.h"
#include "graphs/training_step.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/memory/memory_plan.h"

namespace tbdsim {

// Bytes of PyTorch's segments beyond the plan's: free parts that are too small for the next tensor, though
// segments that are free as a whole were returned to the device before memory ran out. An iteration fits if
// the plan with them does. 0 where they decide nothing: under other allocators, below half of the usable
// memory, and above all of it. `plan`: of the step at this batch; `costs`: of its kernels; `others`: bytes
// beside the plan, such as buckets of gradients.
[[nodiscard]] Bytes fragments_of(const MemoryPlan& plan, const TrainingStep& step,
                                 std::span<const KernelCost> costs, double batch, const Framework& framework,
                                 Bytes usable, Bytes others = Bytes());

}  // namespace tbdsim
