// Activations kept in half precision between forward and backward pass (Jain et al., "Gist", ISCA 2018,
// delayed precision reduction).
#pragma once

#include "graphs/training_step.h"

namespace tbdsim {

// The step in which activations of 4 B numbers are 2 B numbers between the passes: a kernel converts each
// after its last use in the forward pass, another before its first use in the backward pass. Numbers of 2 B
// are not changed.
[[nodiscard]] TrainingStep with_half_precision_activations(const TrainingStep& step);

}  // namespace tbdsim
