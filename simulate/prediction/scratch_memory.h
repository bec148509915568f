// Scratch memory of convolutions on a GPU that is nearly full: a framework that takes the fastest algorithm
// that fits
// (`scratch_as_fits` of its allocator) runs a slower one there.
#pragma once

#include <optional>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// The calibration with the scratch memory that is left to a convolution, in bytes what all else of the
// iteration leaves of the GPU, at least 1; nothing where algorithms of `costs`, chosen without this limit,
// fit. `costs`: of the iteration's kernels with so many samples.
[[nodiscard]] std::optional<Calibration> with_scratch_left(const Prediction& prediction,
                                                           const Iteration& iteration,
                                                           const std::vector<KernelCost>& costs,
                                                           double batch);

// The memory of so many samples of one length, an index of the prediction's iterations; without scratch
// memory where it does not fit with that of `costs`.
[[nodiscard]] MemoryPlan memory_of(const Prediction& prediction, std::size_t length, double samples,
                                   const std::vector<KernelCost>& costs);

}  // namespace tbdsim
