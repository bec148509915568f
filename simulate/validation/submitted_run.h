// A submission as the program predicts it: its rate, and the time after any number of epochs.
#pragma once

#include <functional>
#include <memory>

#include "graphs/convergence.h"
#include "simulate/validation/tta_submissions.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

struct SubmittedRun {
  double samples_per_s = 0;
  double rate_factor = 1;                              // 80 % of rates are expected within it
  double batch = 0;                                    // samples of all GPUs in an iteration
  std::shared_ptr<const Convergence> to;               // none where the benchmark has no target
  std::function<Seconds(const EpochsToTarget&)> time;  // on the clock; needs `to`
};

// Throws Error where the submission has no prediction.
[[nodiscard]] SubmittedRun run_of(const Submission& submission, const SuiteRules& rules, SpecCache& specs);

}  // namespace tbdsim
