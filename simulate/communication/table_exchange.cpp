#include "simulate/communication/table_exchange.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

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

// Time of kernels of one kind of pass, of layers before the first table.
double lower_time(const TrainingStep& step, const Timeline& timeline, int first_table, bool forward) {
  double time = 0;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    const bool lower = kernel.layer >= 0 && kernel.layer < first_table && kernel.phase != Phase::update;
    if (!lower || (kernel.phase == Phase::forward) != forward) continue;
    time += (timeline.kernels[k].end - timeline.kernels[k].start).si();
  }
  return time;
}

// Time in which what leaves a machine in an all-to-all crosses the network; 0 for one machine.
Seconds network_time(const AllReduceRanks& ranks, Bytes bytes) {
  const RankGroup& outer = ranks.outer;
  if (outer.ranks < 2 || outer.bandwidth.si() <= 0) return {};
  const double leaving = static_cast<double>(ranks.inner.ranks) * (1 - 1 / static_cast<double>(outer.ranks));
  return Seconds(leaving * bytes.si() / (outer.cost.efficiency * outer.bandwidth.si()));
}

// Two all-to-alls, there and back.
Seconds exchange_time(const AllReduceRanks& ranks, Bytes bytes) {
  return std::max(all_reduce_time(ranks, bytes), 2 * network_time(ranks, bytes));
}

// True where the first rank computes the lower network for all and has no tables.
bool is_first_without_tables(const TrainingStep& step, const SyncPlan& plan) {
  const bool has_lower = std::ranges::any_of(
      step.layers, [](const LayerSummary& layer) { return layer.shard == Sharding::first_rank; });
  return has_lower && static_cast<double>(plan.ranks()) > kMostRanksWithBoth;
}

// Tables of the fullest rank over the mean, f.
double fullest_over_mean(const LayerSummary& table, const SyncPlan& plan, bool first_without) {
  if (plan.cut_tables) return 1;
  const auto count = static_cast<double>(table.output.dims.front());
  const auto ranks = static_cast<double>(plan.ranks());
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

Bytes held_by_others(const TrainingStep& step, double batch, TensorRole role, const SyncPlan& plan) {
  Bytes bytes;
  if (!shares_layers(plan)) return bytes;
  const auto ranks = static_cast<double>(plan.ranks());
  const bool first_without = is_first_without_tables(step, plan);
  for (const ParameterGradient& gradient : step.gradients) {
    if (!is_spread_table(step, gradient)) continue;
    const LayerSummary& table = step.layers[static_cast<std::size_t>(gradient.layer)];
    const double own = std::min(1.0, fullest_over_mean(table, plan, first_without) / ranks);
    for (const Tensor& tensor : step.tensors) {
      if (tensor.layer == gradient.layer && tensor.role == role)
        bytes += Bytes(tensor.bytes.at(batch)) * (1 - own);
    }
  }
  return bytes;
}

TableExchange table_exchange(const TrainingStep& step, const Timeline& timeline, double batch,
                             const SyncPlan& plan) {
  TableExchange all;
  if (!shares_layers(plan)) return all;
  const auto ranks = static_cast<double>(plan.ranks());
  const PassTimes lower = times_of(step, timeline, [&](int layer) {
    return step.layers[static_cast<std::size_t>(layer)].shard == Sharding::first_rank;
  });
  const bool first_without = is_first_without_tables(step, plan);
  PassTimes tables{};
  PassTimes fullest{};
  int first_table = std::numeric_limits<int>::max();
  for (const ParameterGradient& gradient : step.gradients) {
    if (!is_spread_table(step, gradient)) continue;
    const LayerSummary& table = step.layers[static_cast<std::size_t>(gradient.layer)];
    const double full = fullest_over_mean(table, plan, first_without);
    first_table = std::min(first_table, gradient.layer);
    const PassTimes own = times_of(step, timeline, [&](int layer) { return layer == gradient.layer; });
    for (std::size_t pass = 0; pass < own.size(); ++pass) {
      tables[pass] += own[pass];
      fullest[pass] += full * own[pass];
    }
    // Fewer numbers than those of the rows where these are summed.
    const Bytes vectors(elements(table.output).at(batch) * sent_bytes(step, gradient.layer));
    all.vectors += vectors;
    all.exchange += exchange_time(*plan.stages.front().all_reduce, vectors * full);
  }
  if (plan.cut_tables && all.exchange > Seconds(0)) {
    const double once = all.exchange.si() / 2;
    for (const bool forward : {true, false})
      all.exchange -= Seconds(std::min(once, lower_time(step, timeline, first_table, forward)));
  }
  for (std::size_t pass = 0; pass < tables.size(); ++pass) {
    const double whole = ranks * lower[pass];
    const double slowest = first_without ? std::max(whole, fullest[pass]) : whole + fullest[pass];
    all.imbalance += Seconds(slowest - lower[pass] - tables[pass]);
  }
  return all;
}

}  // namespace tbdsim
