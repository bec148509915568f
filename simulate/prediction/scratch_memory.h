// Scratch memory of convolutions on a GPU that is nearly full: a framework that takes the fastest algorithm
// that fits (`scratch_as_fits` of its allocator) runs slower ones where much is alive.
//
// A convolution is left the usable memory less the context, the workspaces that libraries keep,
// buffers of the exchange, and the tensors alive while it runs. Fragments of the allocator take none of it:
// they decide whether the iteration fits without scratch memory, and beside it have at most what is left.
#pragma once

#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// The memory of so many samples of one length, an index of the prediction's steps, with the scratch memory of
// exactly these costs. Convolutions whose scratch memory is more than what is left to them get the cost of
// the fastest algorithm that fits. Where not even tensors alone fit, times stay and no scratch memory counts.
// Plans made before the run are left as they are. `costs`: of the step's kernels, chosen without this limit;
// those of convolutions will do.
[[nodiscard]] MemoryPlan fit_scratch(const Prediction& prediction, std::size_t length, double samples,
                                     std::vector<KernelCost>& costs);

struct OutlinedStep {
  const TrainingStep& step;
  const MemoryOutline& memory;  // of that step
};

// The same of another step in place of that length's, such as one that recomputes feature maps.
[[nodiscard]] MemoryPlan fit_scratch(const Prediction& prediction, std::size_t length, const OutlinedStep& of,
                                     double samples, std::vector<KernelCost>& costs);

}  // namespace tbdsim
