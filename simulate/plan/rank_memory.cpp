#include "simulate/plan/rank_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tbdsim {

StageLayers layers_of_stage(const ParallelLayout& layout, std::int64_t stage, const DecoderShape& shape) {
  double layers = 0;
  for (std::int64_t c = 0; c < layout.vp; ++c)
    layers += static_cast<double>(layers_of_chunk(layout, c * layout.pp + stage, shape.layers));
  if (!shape.mixture()) return {layers, 0};
  // Blocks without experts come first.
  double dense = 0;
  if (stage == 0) dense = std::min(layers, static_cast<double>(shape.dense_layers));
  return {dense, layers - dense};
}

StageLayers kept_layers(const ParallelLayout& layout, const StageLayers& layers) {
  if (layout.recompute_layers == 0) return {};
  const double all = layers.dense + layers.expert;
  const double kept = std::max(0.0, all - static_cast<double>(layout.recompute_layers * layout.vp));
  const double experts = std::min(kept, layers.expert);
  return {kept - experts, experts};
}

namespace {

StageParameters sum_of_stage(const ParallelLayout& layout, std::int64_t stage, const PieceCosts& costs,
                             const DecoderShape& shape, double PieceCost::*shared,
                             double PieceCost::*experts) {
  const StageLayers layers = layers_of_stage(layout, stage, shape);
  StageParameters sum{layers.dense * costs.dense.*shared + layers.expert * costs.expert.*shared,
                      layers.expert * costs.expert.*experts};
  const bool last = stage == layout.pp - 1;
  if (stage == 0 || (last && shape.tied)) sum.shared += costs.embedding.*shared;  // logits share its matrix
  if (last) sum.shared += costs.head.*shared;
  return sum;
}

}  // namespace

StageParameters parameters_of_stage(const ParallelLayout& layout, std::int64_t stage, const PieceCosts& costs,
                                    const DecoderShape& shape) {
  return sum_of_stage(layout, stage, costs, shape, &PieceCost::parameters, &PieceCost::expert_parameters);
}

StageParameters trained_of_stage(const ParallelLayout& layout, std::int64_t stage, const PieceCosts& costs,
                                 const DecoderShape& shape) {
  return sum_of_stage(layout, stage, costs, shape, &PieceCost::trained, &PieceCost::trained_experts);
}

namespace {

// Buffers of the communicators of one rank: its tensor-parallel and context-parallel ranks, its replicas, the
// neighbouring stage, all ranks.
Bytes communicators(const ParallelLayout& l, const Fabric& fabric) {
  const std::pair<std::int64_t, std::int64_t> groups[] = {
      {l.tp, 1},
      {l.cp, l.tp},
      {l.replicas(), l.tp},
      {std::min<std::int64_t>(l.pp, 2), l.tp * l.replicas()},
      {l.ranks(), 1}};
  Bytes sum;
  for (const auto& [ranks, stride] : groups) sum += buffers_of(fabric, group_of(fabric, ranks, stride));
  return sum;
}

// Bytes of cuBLAS's workspaces, which stay once they are made: those of PyTorch's handles
// (aten/src/ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize: 32 MiB from Hopper on, else 8 MiB and
// 128 kiB) and those of Transformer Engine, of which Userbuffers have three more and
// products of experts one for each of four streams (pytorch/cpp_extensions/gemm.py@d0067d0d,
// get_cublas_workspace).
Bytes workspaces(const PlanInputs& in) {
  constexpr double kHopper = 9;
  const bool large = in.calibration->gpu->compute_capability >= kHopper;
  const double usual = large ? 32 * kMebi : 8.125 * kMebi;
  const double of_torch = in.stack.workspace > Bytes(0) ? in.stack.workspace.si() : usual;
  const double of_engine = large ? 32 * kMebi : 4 * kMebi;
  double engines = 0;
  if (in.stack.transformer_engine)
    engines = 1 + (in.stack.overlaps_tensor ? 3 : 0) + (in.shape.mixture() ? 4 : 0);
  return Bytes(in.stack.handles * of_torch + engines * of_engine);
}

// Bytes of one rank of a stage, part by part.
class StageMemory {
 public:
  StageMemory(const ParallelLayout& layout, std::int64_t stage, const PieceCosts& costs,
              const PlanInputs& inputs)
      : l_(layout),
        stage_(stage),
        costs_(costs),
        in_(inputs),
        stack_(inputs.stack),
        last_(stage == layout.pp - 1),
        layers_(layers_of_stage(layout, stage, inputs.shape)),
        all_(parameters_of_stage(layout, stage, costs, inputs.shape)),
        trained_(trained_of_stage(layout, stage, costs, inputs.shape)) {}

  [[nodiscard]] RankMemory run() const {
    RankMemory m;
    m.stage = stage_;
    m.parameters = parameters();
    m.gradients = Bytes(stack_.gradient_bytes * number(trained_, 2));
    m.optimizer = Bytes((stack_.master_bytes + stack_.moment_bytes) * number(trained_, 1));
    m.activations = activations();
    const Bytes pass = m.activations + working();
    const Bytes stays = workspaces(in_);
    m.working = working() + stays;
    const Bytes states = m.parameters + m.gradients + m.optimizer + stays;
    // Copies of the update are large and find no room among what the allocator holds of activations.
    const Bytes copies(stack_.update_copies * number(trained_, 1));
    const Bytes update = copies + (l_.replicas() > 1 ? stack_.buckets : Bytes(0));
    const Bytes after = last_ ? costs_.head.after : Bytes(0);
    m.allocated = states + std::max({pass, update, after});
    const Bytes beside = stack_.context + communicators(l_, in_.fabric);
    m.reserved =
        reserved((states + std::max(pass + update + holes(), after)) * stack_.reserved, m.allocated, beside);
    m.device = m.reserved + beside;
    return m;
  }

 private:
  // Bytes that the caching allocator holds of a card on which `beside` is taken: `usual`, what it would hold
  // on any card, or what there is room for. Before it fails it gives back what it holds free (PyTorch,
  // c10/cuda/CUDACachingAllocator.cpp, malloc: release_cached_blocks), so that tensors alone have to fit.
  [[nodiscard]] Bytes reserved(Bytes usual, Bytes allocated, Bytes beside) const {
    const Bytes room(std::floor((in_.calibration->gpu->usable_memory - beside).si()));
    return std::max(allocated, std::min(usual, room));
  }

  // Numbers that the rank holds where ZeRO divides them from this stage on.
  [[nodiscard]] double number(const StageParameters& of, int from) const {
    return l_.zero < from ? of.all() : of.of_shard(l_);
  }

  // Frozen parameters have no fp32 copy. Embedding and logits are in 16 bits, whatever the layers are in.
  [[nodiscard]] Bytes parameters() const {
    constexpr double kHalf = 2;
    const bool is_copy = l_.zero == 3 && stack_.master_is_parameter;
    const double held = number(all_, 3) - (is_copy ? number(trained_, 3) : 0);
    const bool embeds = stage_ == 0 || (last_ && in_.shape.tied);
    const double ends = (embeds ? costs_.embedding.parameters : 0) + (last_ ? costs_.head.parameters : 0);
    return Bytes(stack_.parameter_bytes * held + (kHalf - stack_.parameter_bytes) * number({ends, 0}, 3));
  }

  // Activations of all micro-batches in flight.
  [[nodiscard]] Bytes activations() const {
    const auto r = static_cast<std::size_t>(l_.recompute);
    const StageLayers whole = kept_layers(l_, layers_);
    const auto of = [&](const PieceCost& block, double layers, double kept) {
      return block.kept[r] * (layers - kept) + block.kept[0] * kept;
    };
    const Bytes kept = of(costs_.dense, layers_.dense, whole.dense) +
                       of(costs_.expert, layers_.expert, whole.expert) +
                       (stage_ == 0 ? costs_.embedding.kept[r] : Bytes(0));
    return kept * micro_batches_in_flight(l_.order, stage_, l_.pp, micro_batches(l_, in_.job), l_.vp);
  }

  // The most that a part of a pass has alive within a block, with what of it is computed again.
  [[nodiscard]] Bytes of_block() const {
    const auto r = static_cast<std::size_t>(l_.recompute);
    const auto again = [&](const PieceCost& block) { return block.kept[0] - block.kept[r]; };
    const Bytes block = std::max(costs_.dense.largest, costs_.expert.largest) +
                        std::max(again(costs_.dense), again(costs_.expert));
    return l_.zero == 3 ? block + unreduced() : block;
  }

  // The larger of that and of the scores of words, which are alive before there are gradients; and what is
  // gathered.
  [[nodiscard]] Bytes working() const {
    const Bytes pass = last_ ? std::max(of_block(), costs_.head.largest) : of_block();
    return l_.zero == 3 ? pass + gathered() : pass;
  }

  // Bytes that the caching allocator holds beside the scores of words, of no use while these are largest.
  [[nodiscard]] Bytes holes() const {
    return last_ && of_block() < costs_.head.largest ? costs_.head.holes : Bytes(0);
  }

  // Gradients of one block, embedding or logits before they are reduced.
  [[nodiscard]] Bytes unreduced() const {
    const PieceCost &dense = costs_.dense, &expert = costs_.expert;
    return Bytes(stack_.reduced_bytes * std::max({dense.trained, expert.trained + expert.trained_experts,
                                                  costs_.embedding.trained, costs_.head.trained}));
  }

  // Parameters of the pass and of the next blocks. What is in no block is one unit, from the first pass to
  // the end of the last (torchtitan, parallelize_llama: fully_shard of the model).
  [[nodiscard]] Bytes gathered() const {
    const PieceCost &dense = costs_.dense, &expert = costs_.expert;
    const double block = std::max(dense.parameters, expert.parameters + expert.expert_parameters);
    const double ahead = static_cast<double>(1 + l_.prefetch) * block;
    const double blocks = l_.reshard ? std::min(ahead, (layers_.dense + layers_.expert) * block)
                                     : layers_.dense * dense.parameters;
    const double ends = costs_.embedding.parameters + costs_.head.parameters;
    return Bytes(stack_.parameter_bytes * (blocks + ends));
  }

  const ParallelLayout& l_;
  std::int64_t stage_;
  const PieceCosts& costs_;
  const PlanInputs& in_;
  const Stack& stack_;
  bool last_;
  StageLayers layers_;
  StageParameters all_, trained_;
};

}  // namespace

RankMemory memory_of_stage(const ParallelLayout& layout, std::int64_t stage, const PieceCosts& costs,
                           const PlanInputs& inputs) {
  return StageMemory(layout, stage, costs, inputs).run();
}

}  // namespace tbdsim
