// The times at which the stages of a layout's pipeline run: passes of micro-batches, then the exchange
// between replicas and the update.
#pragma once

#include <string>
#include <vector>

#include "simulate/plan/step_time.h"

namespace tbdsim {

enum class SliceKind { forward, backward, exchange, update };
inline constexpr std::array<std::string_view, 4> kSliceNames = {"forward", "backward",
                                                                "exchange between replicas", "update"};

struct PipelineSlice {
  int stage = 0;
  SliceKind kind = SliceKind::forward;
  std::string name;  // "forward 3, chunk 1"
  Seconds start, time;
};

// Slices of a step of `micro_batches` micro-batches, stage after stage; chunks of an interleaved stage have
// equal parts of its time. Throws UsageError for a schedule that cannot be simulated event by event, and for
// more than a million passes.
[[nodiscard]] std::vector<PipelineSlice> pipeline_slices(const LayoutPrediction& prediction,
                                                         std::int64_t micro_batches);

}  // namespace tbdsim
