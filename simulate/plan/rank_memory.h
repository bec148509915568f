// Memory of the ranks of a stage of a layout.
#pragma once

#include "simulate/plan/step_time.h"

namespace tbdsim {

[[nodiscard]] RankMemory memory_of_stage(const ParallelLayout& layout, std::int64_t stage,
                                         const PieceCosts& costs, const PlanInputs& inputs);

// Layers with and without experts on a stage.
struct StageLayers {
  double dense = 0;
  double expert = 0;
};
[[nodiscard]] StageLayers layers_of_stage(const ParallelLayout& layout, std::int64_t stage,
                                          const DecoderShape& shape);
// The layers of a stage that `recompute_layers` leaves their activations: the last ones.
[[nodiscard]] StageLayers kept_layers(const ParallelLayout& layout, const StageLayers& layers);

// Parameters of a stage on one rank, before they are divided over replicas.
struct StageParameters {
  double shared = 0;   // that all replicas hold
  double experts = 0;  // that the replicas of the same experts hold

  [[nodiscard]] double all() const { return shared + experts; }
  // One rank holds its part where ZeRO divides them.
  [[nodiscard]] double of_shard(const ParallelLayout& layout) const {
    const std::int64_t ranks = layout.shard_ranks();
    return shared / static_cast<double>(ranks) + experts / static_cast<double>(layout.expert_replicas(ranks));
  }
};
[[nodiscard]] StageParameters parameters_of_stage(const ParallelLayout& layout, std::int64_t stage,
                                                  const PieceCosts& costs, const DecoderShape& shape);
// The parameters that train.
[[nodiscard]] StageParameters trained_of_stage(const ParallelLayout& layout, std::int64_t stage,
                                               const PieceCosts& costs, const DecoderShape& shape);

}  // namespace tbdsim
