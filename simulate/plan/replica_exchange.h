// Collectives between replicas: of gradients and parameters once a step, of shards for every micro-batch
// (ZeRO-3).
#pragma once

#include "simulate/plan/rank_memory.h"

namespace tbdsim {

struct ExchangeTime {
  Seconds busy;     // of the collectives
  Seconds exposed;  // by which they make the step longer
};

// Once a step, of a stage with these passes of its last micro-batch, beside which they can run.
[[nodiscard]] ExchangeTime exchange_of_step(const ParallelLayout& layout, std::int64_t stage,
                                            const PieceCosts& costs, const PlanInputs& inputs,
                                            Seconds forward, Seconds backward);

// With zero 3, of one micro-batch through a stage: every block's parameters, and their gradients, are a
// message of their own. What is in no block, embedding and logits, is gathered before all and reduced after
// all.
struct ShardTime {
  Seconds gather;  // of parameters, for the forward pass and, where they are not kept, the backward pass
  Seconds reduce;  // of gradients
  Seconds root_gather, root_reduce;  // of these what is in no block
};
[[nodiscard]] ShardTime exchange_of_shards(const ParallelLayout& layout, const StageLayers& layers,
                                           const PieceCosts& costs, const PlanInputs& inputs);

// Seconds that collectives of blocks add to a pass beside which they run: what is `alone`, the first or the
// last, is exposed, each other one as far as it takes longer than a block's pass, which it slows. Without
// prefetching all of it.
[[nodiscard]] Seconds added_by_shards(const ParallelLayout& layout, Seconds collectives, Seconds pass,
                                      Seconds alone);

}  // namespace tbdsim
