// When a decoder that is divided over a cluster reaches a target quality, by layout.
#pragma once

#include <span>

#include "graphs/convergence.h"
#include "hwspecs/base/table.h"
#include "simulate/job/resolve_job.h"
#include "simulate/plan/step_time.h"

namespace tbdsim {

// A row for each layout, in their order: time, rent and energy until the target. Throws UsageError where the
// global batch of the job is more than the samples of an epoch.
[[nodiscard]] Table plan_target_table(std::span<const LayoutPrediction> layouts, const ResolvedJob& job,
                                      const Convergence& to);

}  // namespace tbdsim
