#include "graphs/independent_chains.h"

#include <algorithm>

namespace tbdsim {
namespace {

const GraphLayer& layer_of(const LayerGraph& graph, int i) {
  return graph.layers[static_cast<std::size_t>(i)];
}

// For each layer from `begin` to `last`, whether `last` depends on it. A layer depends on itself.
std::vector<bool> waited_for(const LayerGraph& graph, int begin, int last) {
  std::vector<bool> waited(static_cast<std::size_t>(last - begin + 1), false);
  waited.back() = true;
  for (int i = last; i > begin; --i) {
    if (!waited[static_cast<std::size_t>(i - begin)]) continue;
    for (const int input : layer_of(graph, i).inputs) {
      if (input >= begin) waited[static_cast<std::size_t>(input - begin)] = true;
    }
  }
  return waited;
}

// The chains of layers from `begin` on around the recurrences a and, after it, b, which does not wait for a;
// empty where something between them waits for both.
IndependentChains chains_around(const LayerGraph& graph, int begin, int a, int b) {
  const std::vector<bool> waited = waited_for(graph, begin, b);
  const auto leads_to_b = [&](int i) { return waited[static_cast<std::size_t>(i - begin)]; };
  IndependentChains chains{a, a + 1, b + 1};
  while (chains.first > begin && !leads_to_b(chains.first - 1)) --chains.first;
  while (!leads_to_b(chains.second)) ++chains.second;

  const auto reads_first = [&](int i) {
    const std::vector<int>& inputs = layer_of(graph, i).inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](int input) { return input >= chains.first && input < chains.second; });
  };
  for (int i = chains.second; i <= b; ++i) {
    if (reads_first(i)) return {};
  }
  while (chains.end < static_cast<int>(graph.layers.size()) && !reads_first(chains.end)) ++chains.end;
  return chains;
}

}  // namespace

std::vector<IndependentChains> independent_chains(const LayerGraph& graph,
                                                  const std::vector<bool>& recurrent) {
  std::vector<IndependentChains> all;
  int begin = 0;    // behind the newest chains
  int before = -1;  // the recurrence before, from there on
  for (int i = 0; i < static_cast<int>(recurrent.size()); ++i) {
    if (i < begin || !recurrent[static_cast<std::size_t>(i)]) continue;
    if (before >= 0 && !waited_for(graph, before, i).front()) {
      const IndependentChains chains = chains_around(graph, begin, before, i);
      begin = std::max(chains.end, before);  // each layer is searched once
      if (chains.end > 0) {
        all.push_back(chains);
        before = -1;
        continue;
      }
    }
    before = i;
  }
  return all;
}

}  // namespace tbdsim
