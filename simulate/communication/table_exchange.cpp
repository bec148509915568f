#include "simulate/communication/table_exchange.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tbdsim {
namespace {

constexpr double kMostRanksWithBoth = 4;  // of which the first has tables beside the lower network

bool shares_layers(const SyncPlan& plan) {
  return !plan.stages.empty() && plan.stages.front().all_reduce.has_value();
}

bool is_spread_table(const TrainingStep& step, const ParameterGradient& gradient) {
  if (gradient.layer < 0) return false;
  const LayerSummary& layer = step.layers[static_cast<std::size_t>(gradient.layer)];
  const bool rows = gradient.elements.per_sample > 0;  // of a dense gradient their number is fixed
  return rows && layer.shard == Sharding::vocabulary && !layer.output.dims.empty();
}

// Time of some layers' kernels in the forward pass, and in the backward pass with the update.
using PassTimes = std::array<double, 2>;

template <class Chosen>
PassTimes times_of(const TrainingStep& step, const Timeline& timeline, Chosen chosen) {
  PassTimes times{};
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    if (kernel.layer < 0 || !chosen(kernel.layer)) continue;
    const KernelSpan& span = timeline.kernels[k];
    times[kernel.phase == Phase::forward ? 0 : 1] += (span.end - span.start).si();
  }
  return times;
}

bool has_lower_network(const TrainingStep& step) {
  return std::ranges::any_of(step.layers,
                             [](const LayerSummary& layer) { return layer.shard == Sharding::first_rank; });
}

// Tables of the fullest rank over the mean, f.
double fullest_over_mean(const LayerSummary& table, double ranks, bool first_without) {
  const auto count = static_cast<double>(table.output.dims.front());
  return std::ceil(count / (first_without ? ranks - 1 : ranks)) * ranks / count;
}

// Bytes of a number of a vector as it is sent: those of the lookup.
double sent_bytes(const TrainingStep& step, int layer) {
  double bytes = 0;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.layer == layer && kernel.phase == Phase::forward)
      bytes = static_cast<double>(kernel.element_bytes);
  }
  return bytes;
}

}  // namespace

bool is_of_shared_layer(const TrainingStep& step, const ParameterGradient& gradient, const SyncPlan& plan) {
  if (gradient.layer < 0 || !shares_layers(plan)) return false;
  const LayerSummary& layer = step.layers[static_cast<std::size_t>(gradient.layer)];
  return layer.shard == Sharding::first_rank || is_spread_table(step, gradient);
}

Bytes tables_of_other_ranks(const TrainingStep& step, TensorRole role, const SyncPlan& plan) {
  if (!shares_layers(plan)) return {};
  const auto ranks = static_cast<double>(plan.ranks());
  const bool first_without = has_lower_network(step) && ranks > kMostRanksWithBoth;
  Bytes elsewhere;
  for (const ParameterGradient& gradient : step.gradients) {
    if (!is_spread_table(step, gradient)) continue;
    const LayerSummary& table = step.layers[static_cast<std::size_t>(gradient.layer)];
    const double own = std::min(1.0, fullest_over_mean(table, ranks, first_without) / ranks);
    for (const Tensor& tensor : step.tensors) {
      if (tensor.layer == gradient.layer && tensor.role == role)
        elsewhere += Bytes(static_cast<double>(tensor.bytes.fixed)) * (1 - own);
    }
  }
  return elsewhere;
}

TableExchange table_exchange(const TrainingStep& step, const Timeline& timeline, double batch,
                             const SyncPlan& plan) {
  TableExchange all;
  if (!shares_layers(plan)) return all;
  const auto ranks = static_cast<double>(plan.ranks());
  const PassTimes lower = times_of(step, timeline, [&](int layer) {
    return step.layers[static_cast<std::size_t>(layer)].shard == Sharding::first_rank;
  });
  const bool first_without = has_lower_network(step) && ranks > kMostRanksWithBoth;
  PassTimes tables{};
  PassTimes fullest{};
  for (const ParameterGradient& gradient : step.gradients) {
    if (!is_spread_table(step, gradient)) continue;
    const LayerSummary& table = step.layers[static_cast<std::size_t>(gradient.layer)];
    const double full = fullest_over_mean(table, ranks, first_without);
    const PassTimes own = times_of(step, timeline, [&](int layer) { return layer == gradient.layer; });
    for (std::size_t pass = 0; pass < own.size(); ++pass) {
      tables[pass] += own[pass];
      fullest[pass] += full * own[pass];
    }
    // Fewer numbers than those of the rows where these are summed.
    const Bytes vectors(elements(table.output).at(batch) * sent_bytes(step, gradient.layer));
    all.vectors += vectors;
    all.exchange += all_reduce_time(*plan.stages.front().all_reduce, vectors * full);
  }
  for (std::size_t pass = 0; pass < tables.size(); ++pass) {
    const double whole = ranks * lower[pass];
    const double slowest = first_without ? std::max(whole, fullest[pass]) : whole + fullest[pass];
    all.imbalance += Seconds(slowest - lower[pass] - tables[pass]);
  }
  return all;
}

}  // namespace tbdsim
