// Recurrences that run step by step and do not wait for each other: the two directions of a bidirectional
// layer, or of a stack of them. An engine with two workers runs them side by side.
#pragma once

#include <vector>

#include "graphs/layer_graph.h"

namespace tbdsim {

// Neighbours in order: [first, second) and [second, end). No member of the second reads, directly or through
// others, what a member of the first makes, and both hold a recurrence. Of layers, or of kernels.
struct IndependentChains {
  int first = 0, second = 0, end = 0;
};

// The layers' chains, each as long as it can be, in order and apart from each other. `recurrent` says which
// layers are recurrences that run step by step.
[[nodiscard]] std::vector<IndependentChains> independent_chains(const LayerGraph& graph,
                                                                const std::vector<bool>& recurrent);

}  // namespace tbdsim
