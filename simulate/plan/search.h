// The legal layouts of a job, and the best of them.
#pragma once

#include <cstddef>
#include <vector>

#include "simulate/plan/step_time.h"

namespace tbdsim {

// Limits of the search, so that it ends.
struct SearchSpace {
  std::int64_t most_tp = 0;  // 0: the GPUs of a domain
  std::int64_t most_cp = 16;
  std::int64_t most_micro_batch = 16;
  std::int64_t most_chunks = 8;
  std::int64_t most_stages = kMostRanks;
  // Besides none: what the stack can compute again.
  bool selective = false;
  bool operators = false;
  bool full = true;
  int zero = -1;  // only this stage; -1: `least_zero` and, without a pipeline, 3
  int least_zero = 1;
};

// Every legal layout within the space, in a fixed order.
[[nodiscard]] std::vector<ParallelLayout> legal_layouts(const DecoderShape& shape, const Job& job,
                                                        std::int64_t domain, const SearchSpace& space = {});

struct Plan {
  std::size_t searched = 0;
  std::size_t fitting = 0;
  std::vector<LayoutPrediction> best;    // fastest first; of those that fit
  std::vector<LayoutPrediction> pareto;  // of step time and memory, fastest first
  // Where none fits: the one that needs least memory.
  std::vector<LayoutPrediction> smallest;
};

// `usable`: memory of a GPU that a run can have. `count`: layouts in `best`.
[[nodiscard]] Plan best_layouts(const std::vector<ParallelLayout>& layouts, const PlanInputs& inputs,
                                FlopsPerSecond peak, Bytes usable, std::size_t count = 10);

}  // namespace tbdsim
