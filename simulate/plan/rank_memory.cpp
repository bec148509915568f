#include "simulate/plan/rank_memory.h"

#include <algorithm>
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

}  // namespace

RankMemory memory_of_stage(const ParallelLayout& layout, std::int64_t stage, const PieceCosts& costs,
                           const PlanInputs& inputs) {
  const Stack& stack = inputs.stack;
  const StageLayers layers = layers_of_stage(layout, stage, inputs.shape);
  const bool first = stage == 0, last = stage == layout.pp - 1;
  const StageParameters all = parameters_of_stage(layout, stage, costs, inputs.shape);
  const StageParameters trained = trained_of_stage(layout, stage, costs, inputs.shape);

  const auto replicas = static_cast<double>(layout.shard > 0 ? layout.shard : layout.replicas());
  // Experts are divided over fewer replicas: those that hold the same experts.
  const double expert_replicas =
      std::max(1.0, replicas * static_cast<double>(layout.tp) / static_cast<double>(layout.ep));
  const auto number = [&](const StageParameters& of, int from) {
    return layout.zero >= from ? of.divided(replicas, expert_replicas) : of.divided(1, 1);
  };
  RankMemory memory;
  memory.stage = stage;
  const bool gathers = layout.zero == 3;
  // Frozen parameters have no fp32 copy.
  const double held = number(all, 3) - (gathers && stack.master_is_parameter ? number(trained, 3) : 0);
  // Embedding and logits are in 16 bits, whatever the layers are in.
  const bool embeds = first || (last && inputs.shape.tied);
  const double in_half = (embeds ? costs.embedding.parameters : 0) + (last ? costs.head.parameters : 0);
  constexpr double kHalf = 2;
  memory.parameters =
      Bytes(stack.parameter_bytes * held + (kHalf - stack.parameter_bytes) * number({in_half, 0}, 3));
  memory.gradients = Bytes(stack.gradient_bytes * number(trained, 2));
  memory.optimizer = Bytes((stack.master_bytes + stack.moment_bytes) * number(trained, 1));

  const auto r = static_cast<std::size_t>(layout.recompute);
  const double flight =
      micro_batches_in_flight(layout.order, stage, layout.pp, micro_batches(layout, inputs.job), layout.vp);
  const StageLayers whole = kept_layers(layout, layers);
  const Bytes kept = costs.dense.kept[r] * (layers.dense - whole.dense) + costs.dense.kept[0] * whole.dense +
                     costs.expert.kept[r] * (layers.expert - whole.expert) +
                     costs.expert.kept[0] * whole.expert + (first ? costs.embedding.kept[r] : Bytes(0));
  memory.activations = kept * flight;
  Bytes working = std::max(costs.dense.largest, costs.expert.largest);
  // What is computed again of one block.
  working += std::max(costs.dense.kept[0] - costs.dense.kept[r], costs.expert.kept[0] - costs.expert.kept[r]);
  if (last) working = std::max(working, costs.head.largest);
  if (gathers) {
    const double block =
        std::max(costs.dense.parameters, costs.expert.parameters + costs.expert.expert_parameters);
    // What is in no block is one unit, from the first pass to the end of the last (torchtitan,
    // parallelize_llama: fully_shard of the model).
    const double ends = costs.embedding.parameters + costs.head.parameters;
    const double ahead = static_cast<double>(1 + layout.prefetch) * block;
    const double gathered = layout.reshard ? std::min(ahead, (layers.dense + layers.expert) * block)
                                           : layers.dense * costs.dense.parameters;
    // Gathered copies of the pass and of the next blocks, and gradients of one block before they are reduced.
    const double block_trained =
        std::max(costs.dense.trained, costs.expert.trained + costs.expert.trained_experts);
    const double ends_trained = std::max(costs.embedding.trained, costs.head.trained);
    working += Bytes(stack.parameter_bytes * (gathered + ends) +
                     stack.reduced_bytes * std::max(block_trained, ends_trained));
  }
  memory.working = working;
  const Bytes states = memory.parameters + memory.gradients + memory.optimizer;
  const Bytes pass = memory.activations + memory.working;
  // Copies of the update are large and find no room among what the allocator holds of activations.
  const Bytes copies(stack.update_copies * number(trained, 1));
  const Bytes update = copies + (layout.replicas() > 1 ? stack.buckets : Bytes(0));
  const Bytes after = last ? costs.head.after : Bytes(0);
  memory.allocated = states + std::max({pass, update, after});
  memory.reserved = (states + std::max(pass + update, after)) * stack.reserved;
  memory.device = memory.reserved + stack.context + communicators(layout, inputs.fabric);
  return memory;
}

}  // namespace tbdsim
