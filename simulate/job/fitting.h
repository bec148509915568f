// Changes that would make a job fit into the memory of its GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/job/resolve_job.h"

namespace tbdsim {

// A layout that fits, and by what it differs from one that does not: "micro_batch 1, recompute full".
struct Remedy {
  std::string change;
  LayoutPrediction prediction;
};

// Changes of one key of the layout after which it fits, the least of each key; of two keys where no single
// one does. Fastest first. `table` is of the job's inputs.
[[nodiscard]] std::vector<Remedy> what_would_fit(const ParallelLayout& layout, const ResolvedJob& job,
                                                 PieceTable& table);

// The largest micro-batch with which the layout fits and divides the batch; 0: none.
[[nodiscard]] std::int64_t largest_micro_batch(ParallelLayout layout, const ResolvedJob& job,
                                               PieceTable& table);

}  // namespace tbdsim
