// The tensors that a training step holds of a graph's parameters: weights, their gradients, the optimizer's
// state, and the gradients that ranks exchange.
#pragma once

#include <cstdint>
#include <vector>

#include "graphs/layer_graph.h"
#include "graphs/training_step.h"

namespace tbdsim {

// Appends a graph's weights and what the optimizer keeps of them, which live as long as the model.
// `first_layer`: the graph's first layer among those of the step.
void append_parameter_tensors(const LayerGraph& graph, int first_layer, const Model& model,
                              const LoweringContext& how, TrainingStep& step);

// Lifetime of the gradients of one graph's weights: several passes, or batches, may accumulate into them
// before one updates.
struct GradientUse {
  std::vector<int> first;  // kernel that writes a layer's gradients first
  int last = 0;            // kernel that needs them last
  bool kept = false;       // from the first batch of an update to its last
};

// Appends the tensors of a graph's weight gradients.
void append_weight_gradients(const LayerGraph& graph, int first_layer, const GradientUse& use,
                             const Model& model, const LoweringContext& how, TrainingStep& step);

// For every layer its last kernel from `first` on; -1 where it has none.
[[nodiscard]] std::vector<int> last_kernels(const TrainingStep& step, std::size_t first);

// Appends the gradients that ranks exchange after a pass that ends with the last kernel; `last`: of each
// layer, as last_kernels() gives them. A tied layer's kernels write the gradients of the layer that owns the
// weights.
void append_gradients(const LayerGraph& graph, int first_layer, std::vector<int> last,
                      const Lowering& lowering, std::int64_t repeat, TrainingStep& step);

}  // namespace tbdsim
