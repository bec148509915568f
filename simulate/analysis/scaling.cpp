#include "simulate/analysis/scaling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/synthetic_machine.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"

namespace tbdsim {
namespace {

constexpr BytesPerSecond kSlowest(12.5e6);  // 100 Mbit/s
constexpr BytesPerSecond kFastest(1.25e12);

// Sets the link that is full for the largest part of the iteration.
void find_busiest(ScalingPoint& point) {
  const Prediction& p = point.prediction;
  if (!p.sync) return;
  const double gradients = mean_over(p.iterations, [](const Iteration& i) { return i.sync.gradients; }).si();
  for (const LinkUse& link : p.sync->links) {
    const double load = gradients * link.bytes_per_byte / link.capacity.si() / p.iteration_time().si();
    if (load <= point.load) continue;
    point.load = load;
    point.busiest = link;
  }
}

// The part of an iteration that waits for gradients, 0 to 1, without contention and stragglers.
double waiting(const Prediction& p) {
  return mean_over(p.iterations, [](const Iteration& i) { return i.sync.exposed; }) / p.iteration_time();
}

Prediction on_cluster(const Prediction& p, const Cluster& cluster, const Resolver& resolve) {
  return with_cluster(p, cluster, resolve.sync(cluster, p), resolve.cores_alone(cluster, *p.gpu));
}

Prediction at_rate(const Prediction& p, BytesPerSecond rate, const Resolver& resolve) {
  Cluster cluster = p.scenario.cluster;
  cluster.network = fmt::format("{:.6f} GB/s", in_unit(rate, "GB/s"));
  return on_cluster(p, cluster, resolve);
}

std::optional<BytesPerSecond> hiding_rate(const Prediction& p, const Resolver& resolve) {
  if (p.scenario.cluster.machines == 1) return std::nullopt;
  if (waiting(at_rate(p, kFastest, resolve)) > kHidden) return std::nullopt;
  double low = std::log(kSlowest.si());
  double high = std::log(kFastest.si());
  constexpr int kSteps = 16;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = (low + high) / 2;
    const bool hidden = waiting(at_rate(p, BytesPerSecond(std::exp(middle)), resolve)) <= kHidden;
    (hidden ? high : low) = middle;
  }
  return BytesPerSecond(std::exp(high));
}

std::optional<int> enough_of(const Prediction& p, const Resolver& resolve) {
  Cluster cluster = p.scenario.cluster;
  const bool machines = cluster.machines > 1;
  for (int n = 1; n < kMostMachines; n = machines && n >= 8 ? n * 2 : n + 1) {
    Cluster more = cluster;
    try {
      int& count = machines ? more.machines : more.gpus;
      count = n;
      const double before = on_cluster(p, more, resolve).throughput();
      count = n + 1;
      if (on_cluster(p, more, resolve).throughput() - before < 0.5 * before / n) return n;
    } catch (const UsageError&) {  // beyond what the machine holds or the network joins
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// The point with the most GPUs for each model, framework, batch and network.
std::vector<const ScalingPoint*> largest_of(std::span<const ScalingPoint> points) {
  std::vector<const ScalingPoint*> largest;
  const auto alike = [](const ScalingPoint& a, const ScalingPoint& b) {
    const Scenario& x = a.prediction.scenario;
    const Scenario& y = b.prediction.scenario;
    return x.model == y.model && x.framework == y.framework && x.batch == y.batch &&
           x.cluster.network == y.cluster.network;
  };
  for (const ScalingPoint& point : points) {
    const auto found = std::find_if(largest.begin(), largest.end(),
                                    [&](const ScalingPoint* other) { return alike(point, *other); });
    if (found == largest.end()) {
      largest.push_back(&point);
    } else if (point.prediction.ranks() > (*found)->prediction.ranks()) {
      *found = &point;
    }
  }
  return largest;
}

}  // namespace

std::string network_assumed_for(const Cluster& cluster, const GpuSpec& gpu, const Resolver& resolve) {
  if (!cluster.network.empty() || cluster.ranks() == 1) return "";
  if (cluster.machine.empty()) return usual_interconnect(gpu);
  if (cluster.machines == 1) return "";
  const MachineSpec machine = resolve.machine(cluster, gpu);
  return machine.networks.empty() ? "" : machine.networks.front().link.name;
}

ScalingPoint scaling_point(const Prediction& one, const Cluster& cluster, const Resolver& resolve) {
  ScalingPoint point{.prediction = on_cluster(one, cluster, resolve),
                     .exposed = {},
                     .sync = {},
                     .busiest = {},
                     .assumed_network = {}};
  const Prediction& p = point.prediction;
  point.speed_up = p.throughput() / one.throughput();
  point.efficiency = point.speed_up / static_cast<double>(p.ranks());
  point.exposed = mean_over(p.iterations, [](const Iteration& i) { return i.sync.added(); });
  point.sync = mean_over(p.iterations, [](const Iteration& i) { return i.sync.total; });
  find_busiest(point);
  return point;
}

std::vector<ScalingPoint> predict_scaling(const Scenario& scenario, std::span<const Cluster> clusters,
                                          const Resolver& resolve) {
  Scenario single = scenario;
  single.cluster = {};
  const Prediction one = predict(single, resolve);
  std::vector<ScalingPoint> points;
  for (const Cluster& cluster : clusters) {
    ScalingPoint& point = points.emplace_back(scaling_point(one, cluster, resolve));
    point.assumed_network = network_assumed_for(cluster, *point.prediction.gpu, resolve);
  }
  return points;
}

ScalingAdvice advise(const ScalingPoint& point, const Resolver& resolve) {
  return {hiding_rate(point.prediction, resolve), enough_of(point.prediction, resolve)};
}

std::vector<AdvisedPoint> advise_largest(std::span<const ScalingPoint> points, const Resolver& resolve) {
  std::vector<AdvisedPoint> advised;
  for (const ScalingPoint* point : largest_of(points)) {
    if (point->prediction.ranks() > 1) advised.push_back({point, advise(*point, resolve)});
  }
  return advised;
}

}  // namespace tbdsim
