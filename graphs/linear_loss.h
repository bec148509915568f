// Cross entropies over a vocabulary that are computed with the product that makes their scores, so that no
// tensor holds all scores.
//
//   fused_linear  a part of the positions at a time: scores, the loss, which writes their gradient over them,
//                 gradients of the input and of the weights, added to those of the parts before. Liger
//                 (linkedin/Liger-Kernel@ead96b6, ops/fused_linear_cross_entropy.py) has ceil(words / features)
//                 parts, of a power of two positions each; PyTorch's linear_cross_entropy the same
//                 (nn/modules/linear_cross_entropy_options.py, aspect_ratio)
//   cut           kernels that make a tile of scores and use it at once: the loss forward; going back the tile
//                 again, then both gradients (apple/ml-cross-entropy@d42911f, cce_lse_forward.py,
//                 cce_backward.py). Tiles whose gradient is too small to count, which it skips, are counted
#pragma once

#include <cstdint>
#include <vector>

#include "graphs/layer_graph.h"

namespace tbdsim {

// The part that a layer has in such a loss.
struct LossPart {
  enum class Role { none, scores, loss };
  Role role = Role::none;
  std::int64_t parts = 1;     // of the positions, one after another
  std::int64_t features = 0;  // of a position, which the product reads
};

// The part of each layer of the graph: all are none unless the lowering joins losses with products, and a
// cross entropy alone reads the product of one input with weights.
[[nodiscard]] std::vector<LossPart> loss_parts(const LayerGraph& graph, const Lowering& lowering);

// Makes a layer's kernels of the pass, those from `first` on, the ones that run in a joined loss.
void join_forward(const LossPart& part, const GraphLayer& layer, const LoweringContext& how,
                  std::size_t first, std::vector<Kernel>& kernels);
void join_backward(const LossPart& part, const GraphLayer& layer, const LoweringContext& how,
                   std::size_t first, std::vector<Kernel>& kernels);

// Bytes of the layer's output that exist at once, of the `bytes` of all of it.
[[nodiscard]] Size held_at_once(const LossPart& part, const GraphLayer& layer, const Lowering& lowering,
                                Size bytes);

}  // namespace tbdsim
