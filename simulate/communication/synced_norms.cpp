#include "simulate/communication/synced_norms.h"

#include "graphs/precision.h"

namespace tbdsim {

Seconds synced_norm_time(const TrainingStep& step, const SyncPlan& plan) {
  Seconds time;
  if (!step.synced_norms || plan.stages.empty() || !plan.stages.front().all_reduce) return time;
  const AllReduceRanks& ranks = *plan.stages.front().all_reduce;
  for (const LayerSummary& layer : step.layers) {
    if (layer.type != "batch_norm" || layer.trained_parameters == 0) continue;
    const auto sums = static_cast<double>(layer.statistics);  // a mean and a variance of each channel
    time += all_reduce_time(ranks, Bytes((sums + 1) * kFp32Bytes));
    time += all_reduce_time(ranks, Bytes(sums * kFp32Bytes));
  }
  return time;
}

}  // namespace tbdsim
