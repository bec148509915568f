// Training steps with less memory and more work: what frameworks do, or could, to make a batch fit. Each
// returns a step like any other, to be costed, run and planned as usual.
#pragma once

#include <optional>
#include <vector>

#include "graphs/rewrites/rewrites.h"
#include "graphs/training_step.h"

namespace tbdsim {

// Keeps the feature maps at the ends of about sqrt(n) segments of the forward pass only; before the backward
// pass of each segment its forward kernels run again. The last segment keeps everything. None where forward
// and backward passes alternate, or where nothing is kept (Chen et al., "Training Deep Nets with Sublinear
// Memory Cost", 2016).
[[nodiscard]] std::optional<TrainingStep> with_recomputation(const TrainingStep& step);

// Keeps feature maps of 4 B numbers in 2 B between forward and backward pass: a kernel converts each after
// its last use, another before it is read again (Jain et al., "Gist", ISCA 2018, delayed precision
// reduction). Numbers that are in 2 B already stay.
[[nodiscard]] TrainingStep with_half_precision_maps(const TrainingStep& step);

// Without feature maps between forward and backward pass: they are on the host meanwhile (Rhu et al., "vDNN",
// MICRO 2016). The copies themselves run beside the kernels; a map is back one map ahead.
[[nodiscard]] TrainingStep with_maps_on_host(const TrainingStep& step);

// Those maps, in the order of the step's tensors.
[[nodiscard]] std::vector<OffloadedActivation> maps_on_host(const TrainingStep& step);

}  // namespace tbdsim
