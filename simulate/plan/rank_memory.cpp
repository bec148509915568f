#include "simulate/plan/rank_memory.h"

#include <algorithm>

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

RankMemory memory_of_stage(const ParallelLayout& layout, std::int64_t stage, const PieceCosts& costs,
                           const PlanInputs& inputs) {
  const Stack& stack = inputs.stack;
  const StageLayers layers = layers_of_stage(layout, stage, inputs.shape);
  const bool first = stage == 0, last = stage == layout.pp - 1;
  double shared = layers.dense * costs.dense.parameters + layers.expert * costs.expert.parameters;
  const double experts = layers.expert * costs.expert.expert_parameters;
  if (first) shared += costs.embedding.parameters;
  if (last) shared += costs.head.parameters;
  if (last && !first && inputs.shape.tied) shared += costs.embedding.parameters;

  const auto replicas = static_cast<double>(layout.shard > 0 ? layout.shard : layout.replicas());
  // Experts are divided over fewer replicas: those that hold the same experts.
  const double expert_replicas =
      std::max(1.0, replicas * static_cast<double>(layout.tp) / static_cast<double>(layout.ep));
  const auto bytes = [&](double each, int from) {
    const bool divided = layout.zero >= from;
    return Bytes(each * (shared / (divided ? replicas : 1) + experts / (divided ? expert_replicas : 1)));
  };
  RankMemory memory;
  memory.stage = stage;
  const bool gathers = layout.zero == 3;
  // With zero 3 the master copy is the parameter.
  memory.parameters = gathers ? Bytes(0) : bytes(stack.parameter_bytes, 3);
  memory.gradients = bytes(stack.gradient_bytes, 2);
  memory.optimizer = bytes(stack.master_bytes + stack.moment_bytes, 1);

  const auto r = static_cast<std::size_t>(layout.recompute);
  const double flight =
      micro_batches_in_flight(layout.order, stage, layout.pp, micro_batches(layout, inputs.job), layout.vp);
  const Bytes kept = costs.dense.kept[r] * layers.dense + costs.expert.kept[r] * layers.expert +
                     (first ? costs.embedding.kept[r] : Bytes(0));
  memory.activations = kept * flight;
  Bytes working = std::max(costs.dense.largest, costs.expert.largest);
  if (layout.recompute == Recomputation::full) working += std::max(costs.dense.kept[0], costs.expert.kept[0]);
  if (last) working = std::max(working, costs.head.largest);
  if (gathers) {
    const double block =
        std::max(costs.dense.parameters, costs.expert.parameters + costs.expert.expert_parameters);
    const double ends = std::max(costs.embedding.parameters, costs.head.parameters);
    const double held = layout.reshard ? 2 * block : layers.dense * costs.dense.parameters;
    // Gathered copies of the pass and of the next block, and gradients of one block before they are reduced.
    working += Bytes(stack.parameter_bytes * (held + ends) + stack.reduced_bytes * std::max(block, ends));
  }
  memory.working = working;
  memory.allocated =
      memory.parameters + memory.gradients + memory.optimizer + memory.activations + memory.working;
  // Copies of the update are large and find no room among what the allocator holds of activations.
  const bool updates_part = layout.zero >= 1;
  const Bytes copies = Bytes(stack.update_copies * (shared / (updates_part ? replicas : 1) +
                                                    experts / (updates_part ? expert_replicas : 1)));
  const Bytes states = memory.parameters + memory.gradients + memory.optimizer;
  const Bytes buckets = layout.replicas() > 1 ? stack.buckets : Bytes(0);
  memory.allocated = std::max(memory.allocated, states + copies + buckets);
  memory.reserved = (states + memory.activations + memory.working + copies + buckets) * stack.reserved;
  memory.device = memory.reserved + stack.context;
  return memory;
}

}  // namespace tbdsim
