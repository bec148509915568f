// A prediction changed in one part: what the change affects is simulated again, the rest is kept. Several
// times as fast as a prediction of its own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// The prediction on a GPU that differs in its rates only (clocks, bandwidths, number of units, memory).
// A cache makes it faster and changes no number.
[[nodiscard]] Prediction with_rates(Prediction prediction, std::shared_ptr<const GpuSpec> gpu,
                                    EstimateCache* cache = nullptr);

// The prediction on a cluster of such GPUs. `plan` is plan_sync() of the cluster, none for one GPU;
// `cores` is cores_alone() of it.
[[nodiscard]] Prediction with_cluster(Prediction prediction, const Cluster& cluster,
                                      std::optional<SyncPlan> plan, double cores = 0);

// The mean time of an iteration under the launch model and the kernel factors of `framework`, which differs
// from the prediction's in nothing else.
[[nodiscard]] Seconds iteration_time_with(const Framework& framework, const Prediction& prediction);

// Multiplies the times of kernels by the factors of their kinds.
void scale(std::vector<KernelCost>& costs, const TrainingStep& step, const KernelFactors& factors);

}  // namespace tbdsim
