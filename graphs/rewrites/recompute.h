// Recomputation of activations in the backward pass, also called gradient checkpointing (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016).
#pragma once

#include <optional>

#include "graphs/training_step.h"

namespace tbdsim {

// Parts of the forward pass whose activations are computed again.
//   segments    all of about sqrt(n) parts but the last, n the number of kept activations
//   blocks      every repetition of a block, as programs checkpoint the layers of a transformer
//   attention   layers of type attention (Korthikanti et al., arXiv 2205.05198: selective)
enum class Recomputed { segments, blocks, attention };

// The step that keeps activations only at the ends of these parts, whose forward kernels run again before
// their backward pass. None where forward and backward passes alternate, or where nothing is kept.
[[nodiscard]] std::optional<TrainingStep> with_recomputation(const TrainingStep& step,
                                                             Recomputed parts = Recomputed::segments);

}  // namespace tbdsim
