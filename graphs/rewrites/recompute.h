// Recomputation of activations in the backward pass, also called gradient checkpointing (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016).
#pragma once

#include <optional>

#include "graphs/training_step.h"

namespace tbdsim {

// The step that keeps activations only at the ends of about sqrt(n) segments of the forward pass, n the
// number of kept activations: the forward kernels of a segment run again before its backward pass. The last
// segment keeps everything. None where forward and backward passes alternate, or where nothing is kept.
[[nodiscard]] std::optional<TrainingStep> with_recomputation(const TrainingStep& step);

}  // namespace tbdsim
