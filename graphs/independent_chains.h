// Step-by-step recurrences that are independent: the two directions of a bidirectional layer, or of a stack
// of them. An engine with two threads runs them concurrently.
#pragma once

#include <vector>

#include "graphs/layer_graph.h"

namespace tbdsim {

// Two adjacent ranges of layers or kernels, [first, second) and [second, end). No member of the second
// depends on a member of the first, and both hold a recurrence.
struct IndependentChains {
  int first = 0;
  int second = 0;
  int end = 0;
};

// The maximal independent chains of the graph's layers, in order and without overlap. `recurrent`: by layer,
// whether it is a recurrence that runs step by step.
[[nodiscard]] std::vector<IndependentChains> independent_chains(const LayerGraph& graph,
                                                                const std::vector<bool>& recurrent);

}  // namespace tbdsim
