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

}  // namespace tbdsim
