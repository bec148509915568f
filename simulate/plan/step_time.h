// The step of one layout: time by part, memory by rank.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "simulate/plan/piece_cost.h"
#include "simulate/schedule/pipeline.h"

namespace tbdsim {

// Parts of a step, in seconds; they sum to `step`. Of the stage that sets the pace.
struct StepParts {
  Seconds compute;   // kernels, all micro-batches
  Seconds again;     // of recomputation
  Seconds launch;    // that the GPU waits for the host
  Seconds within;    // exposed collectives within blocks: tensor, context and expert parallelism
  Seconds sends;     // exposed, between stages
  Seconds bubble;    // fill and drain of the pipeline
  Seconds replicas;  // exposed, of gradients and parameters between replicas
  Seconds update;    // optimizer, with clipping
  Seconds slowest;   // until the slowest of all ranks is ready
  Seconds other;     // once a step: host
};

// Dimensions of a layout that ranks communicate over; stages: sends between them, replicas: gradients and
// parameters.
enum class LayoutDimension { tensor, context, expert, stages, replicas };
inline constexpr std::array<std::string_view, 5> kDimensionNames = {"tensor", "context", "expert", "stages",
                                                                    "replicas"};

// Communication of a step over one dimension, on the stage that sets the pace, in seconds.
struct DimensionTime {
  Seconds busy;     // all of it, also beside kernels
  Seconds exposed;  // what it adds to the step
};

// Bytes on one rank.
struct RankMemory {
  std::int64_t stage = 0;
  Bytes parameters, gradients, optimizer;
  Bytes activations;  // of micro-batches in flight
  Bytes working;      // gathered parameters, logits, what is alive within a pass
  Bytes allocated;    // sum of the above
  Bytes reserved;     // by a caching allocator
  Bytes device;       // with context and communication buffers, as nvidia-smi shows
};

struct LayoutPrediction {
  ParallelLayout layout;
  Seconds step;
  StepParts parts;
  std::array<DimensionTime, kDimensionNames.size()> communication{};  // by LayoutDimension
  double tokens_per_second = 0;                                       // of all GPUs
  double mfu = 0;                                                     // of the arithmetic's data-sheet peak
  std::vector<StageTime> stages;  // with waits, as the pipeline's schedule sees them
  RankMemory first, last;
  RankMemory most;  // of the rank with most reserved

  [[nodiscard]] Seconds exposed() const { return parts.within + parts.sends + parts.replicas; }
};

// Memory of one rank of each stage.
[[nodiscard]] std::vector<RankMemory> memory_by_stage(const ParallelLayout& layout, PieceTable& table);

// The layout is legal. `peak`: operations a second of one GPU that MFU is a share of.
[[nodiscard]] LayoutPrediction predict_layout(const ParallelLayout& layout, PieceTable& table,
                                              FlopsPerSecond peak);

}  // namespace tbdsim
