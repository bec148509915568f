#include "simulate/analysis/scaling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"

namespace tbdsim {
namespace {

constexpr BytesPerSecond kSlowest(12.5e6);  // 100 Mbit/s
constexpr BytesPerSecond kFastest(1.25e12);

// Sets the link that is full for the largest part of the iteration.
void find_busiest(ScalingPoint& point) {
  const Prediction& p = point.prediction;
  if (!p.exchange) return;
  const double gradients =
      mean_over(p.iterations, [](const Iteration& i) { return i.exchange.gradients; }).si();
  for (const LinkUse& link : p.exchange->links) {
    const double load = gradients * link.bytes_per_byte / link.capacity.si() / p.iteration_time().si();
    if (load <= point.load) continue;
    point.load = load;
    point.busiest = link;
  }
}

// The part of an iteration that waits for gradients, 0 to 1, without contention and stragglers.
double waiting(const Prediction& p) {
  return mean_over(p.iterations, [](const Iteration& i) { return i.exchange.exposed; }) / p.iteration_time();
}

Prediction on_cluster(const Prediction& p, const Cluster& cluster, SpecCache& specs) {
  return with_cluster(p, cluster, resolve_sync(cluster, *p.gpu, *p.framework, specs));
}

Prediction at_rate(const Prediction& p, BytesPerSecond rate, SpecCache& specs) {
  Cluster cluster = p.scenario.cluster;
  cluster.network = fmt::format("{:.6f} GB/s", in_unit(rate, "GB/s"));
  return on_cluster(p, cluster, specs);
}

std::optional<BytesPerSecond> hiding_rate(const Prediction& p, SpecCache& specs) {
  if (p.scenario.cluster.machines == 1) return std::nullopt;
  if (waiting(at_rate(p, kFastest, specs)) > kHidden) return std::nullopt;
  double low = std::log(kSlowest.si());
  double high = std::log(kFastest.si());
  constexpr int kSteps = 16;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = (low + high) / 2;
    const bool hidden = waiting(at_rate(p, BytesPerSecond(std::exp(middle)), specs)) <= kHidden;
    (hidden ? high : low) = middle;
  }
  return BytesPerSecond(std::exp(high));
}

std::optional<int> enough_of(const Prediction& p, SpecCache& specs) {
  Cluster cluster = p.scenario.cluster;
  const bool machines = cluster.machines > 1;
  for (int n = 1; n < kMostMachines; n = machines && n >= 8 ? n * 2 : n + 1) {
    Cluster more = cluster;
    try {
      int& count = machines ? more.machines : more.gpus;
      count = n;
      const double before = on_cluster(p, more, specs).throughput();
      count = n + 1;
      if (on_cluster(p, more, specs).throughput() - before < 0.5 * before / n) return n;
    } catch (const UsageError&) {  // beyond what the machine holds or the network joins
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

ScalingPoint scaling_point(const Prediction& one, const Cluster& cluster, SpecCache& specs) {
  ScalingPoint point{
      .prediction = on_cluster(one, cluster, specs), .exposed = {}, .exchange = {}, .busiest = {}};
  const Prediction& p = point.prediction;
  point.speed_up = p.throughput() / one.throughput();
  point.efficiency = point.speed_up / static_cast<double>(p.ranks());
  point.exposed = mean_over(p.iterations, [](const Iteration& i) { return i.exchange.added(); });
  point.exchange = mean_over(p.iterations, [](const Iteration& i) { return i.exchange.total; });
  find_busiest(point);
  return point;
}

std::vector<ScalingPoint> predict_scaling(const Scenario& scenario, std::span<const Cluster> clusters,
                                          SpecCache& specs) {
  Scenario single = scenario;
  single.cluster = {};
  const Prediction one = predict(single, specs);
  std::vector<ScalingPoint> points;
  for (const Cluster& cluster : clusters) points.push_back(scaling_point(one, cluster, specs));
  return points;
}

ScalingAdvice advise(const ScalingPoint& point, SpecCache& specs) {
  return {hiding_rate(point.prediction, specs), enough_of(point.prediction, specs)};
}

}  // namespace tbdsim
