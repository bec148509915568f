// From names to specs: the only step of a prediction that reads files.
#pragma once

#include <optional>

#include "simulate/prediction/resolved_scenario.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Looks everything up once. A scenario without a GPU has that of its cluster's machine. Throws UsageError,
// SpecError or ModelError.
[[nodiscard]] ResolvedScenario resolve(const Scenario& scenario, SpecCache& specs);

// How the GPUs of a cluster exchange gradients; none for one GPU. Throws as require_cluster(), machine_for()
// and plan_sync().
[[nodiscard]] std::optional<SyncPlan> resolve_sync(const Cluster& cluster, const GpuSpec& gpu,
                                                   const Framework& framework, SpecCache& specs);

}  // namespace tbdsim
