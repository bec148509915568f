#include "simulate/communication/table_exchange.h"

#include <algorithm>
#include <cmath>

namespace tbdsim {
namespace {

const LayerSummary& layer_of(const TrainingStep& step, const ParameterGradient& gradient) {
  return step.layers[static_cast<std::size_t>(gradient.layer)];
}

double fullest_rank(const LayerSummary& layer, std::int64_t ranks) {
  const auto tables = static_cast<double>(layer.output.dims.front());
  const auto n = static_cast<double>(ranks);
  return std::ceil(tables / n) * n / tables;
}

}  // namespace

bool is_spread_table(const TrainingStep& step, const ParameterGradient& gradient, const SyncPlan& plan) {
  if (gradient.layer < 0 || plan.stages.empty() || !plan.stages.front().all_reduce) return false;
  const LayerSummary& layer = layer_of(step, gradient);
  const bool rows = gradient.elements.per_sample > 0;  // of a dense gradient their number is fixed
  return rows && layer.shard == Sharding::vocabulary && !layer.output.dims.empty();
}

TableExchange table_exchange(const TrainingStep& step, const Timeline& timeline, double batch,
                             const SyncPlan& plan) {
  TableExchange all;
  for (const ParameterGradient& gradient : step.gradients) {
    if (!is_spread_table(step, gradient, plan)) continue;
    Seconds kernels;
    std::int64_t element_bytes = 0;  // of a vector as it is sent: that of the lookup
    for (std::size_t k = 0; k < step.kernels.size(); ++k) {
      const Kernel& kernel = step.kernels[k];
      if (kernel.layer != gradient.layer) continue;
      kernels += timeline.kernels[k].end - timeline.kernels[k].start;
      if (kernel.phase == Phase::forward) element_bytes = kernel.element_bytes;
    }
    const double fullest = fullest_rank(layer_of(step, gradient), plan.ranks());
    const Size sent = elements(layer_of(step, gradient).output);  // fewer than rows where these are summed
    const Bytes vectors(sent.at(batch) * static_cast<double>(element_bytes));
    all.vectors += vectors;
    all.exchange += all_reduce_time(*plan.stages.front().all_reduce, vectors * fullest);
    all.imbalance += kernels * (fullest - 1);
  }
  return all;
}

}  // namespace tbdsim
