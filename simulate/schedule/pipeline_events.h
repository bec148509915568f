// A pipeline's step, event by event: what each stage runs when, for any stages, and why it waits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulate/schedule/pipeline.h"

namespace tbdsim {

// A forward or backward pass of one micro-batch through one chunk of a stage's layers.
struct PipelineEvent {
  int stage = 0;
  int chunk = 0;
  std::int64_t micro_batch = 0;
  bool forward = true;
  Seconds start;
  Seconds end;
};

struct PipelineEvents {
  std::vector<PipelineEvent> events;  // of a stage in the order they run, stage after stage
  Seconds step;
};

// The events of a step. `chunks[c][i]`: times of stage i's chunk c for one micro-batch; with one chunk the
// order is that of Megatron-LM's forward_backward_pipelining_without_interleaving, with several
// forward_backward_pipelining_with_interleaving (core/pipeline_parallel/schedules.py). `send`: from the end
// of a pass to when the next stage can start its own. Throws std::invalid_argument for zero_bubble, whose
// order depends on the times, for several chunks with gpipe, and where micro-batches of an interleaved
// schedule are no multiple of the stages.
[[nodiscard]] PipelineEvents simulate_pipeline(PipelineOrder order,
                                               std::span<const std::vector<StageTime>> chunks,
                                               std::int64_t micro_batches, Seconds send = Seconds(0));

}  // namespace tbdsim
