#include "simulate/analysis/target_runs.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"

namespace tbdsim {
namespace {

// Predictions of one GPU by batch.
class Alone {
 public:
  Alone(const Scenario& scenario, const Resolver& resolve) : scenario_(scenario), resolve_(resolve) {
    scenario_.cluster = {};
  }

  const Prediction& at(std::int64_t batch) {
    const auto found = made_.find(batch);
    if (found != made_.end()) return found->second;
    scenario_.batch = batch;
    return made_.emplace(batch, predict(scenario_, resolve_)).first->second;
  }

 private:
  Scenario scenario_;
  const Resolver& resolve_;
  std::map<std::int64_t, Prediction> made_;
};

// Powers of two, 3/2 of them, and the largest batch that fits.
std::vector<std::int64_t> candidates(const Prediction& smallest) {
  const std::int64_t most = smallest.largest_batch();
  if (most < 1) {
    throw UsageError(fmt::format("{} does not fit into the memory of {} at any batch; expected another GPU",
                                 smallest.model->name, smallest.gpu->title));
  }
  std::vector<std::int64_t> batches;
  for (std::int64_t power = 1; power <= most; power *= 2) {
    batches.push_back(power);
    if (power > 1 && power / 2 * 3 <= most) batches.push_back(power / 2 * 3);
  }
  if (batches.back() != most) batches.push_back(most);
  return batches;
}

TargetRun run_at(const Prediction& one, const Cluster& cluster, const Resolver& resolve) {
  ScalingPoint point = scaling_point(one, cluster, resolve);
  require_batch_within_epoch(point.prediction);
  const TimeToTarget time = time_to_target(point.prediction).value();
  return {std::move(point.prediction), time, std::move(point.assumed_network)};
}

TargetRun best_run(Alone& alone, const Cluster& cluster, const Resolver& resolve) {
  std::optional<TargetRun> best;
  for (const std::int64_t batch : candidates(alone.at(1))) {
    const Prediction& one = alone.at(batch);
    if (!one.fits) continue;
    Prediction probe = one;
    probe.scenario.cluster = cluster;
    if (best && global_batch(probe) > probe.convergence->epoch) break;
    TargetRun run = run_at(one, cluster, resolve);
    if (!best || run.time.total() < best->time.total()) best = std::move(run);
  }
  return *std::move(best);
}

std::int64_t share_of(std::int64_t global, const Cluster& cluster) {
  if (global % cluster.ranks() == 0) return global / cluster.ranks();
  throw UsageError(fmt::format("a global batch of {} on {} GPUs: not the same on each; expected a multiple",
                               global, cluster.ranks()));
}

}  // namespace

std::vector<TargetRun> target_runs(const Scenario& scenario, const BatchChoice& batch,
                                   std::span<const Cluster> clusters, const Resolver& resolve) {
  Alone alone(scenario, resolve);
  std::vector<TargetRun> runs;
  for (const Cluster& cluster : clusters) {
    if (!batch.each && !batch.global) {
      runs.push_back(best_run(alone, cluster, resolve));
    } else {
      const std::int64_t each = batch.each ? *batch.each : share_of(*batch.global, cluster);
      runs.push_back(run_at(alone.at(each), cluster, resolve));
    }
    runs.back().assumed_network = network_assumed_for(cluster, *runs.back().prediction.gpu, resolve);
  }
  return runs;
}

std::optional<std::size_t> last_that_pays(std::span<const TargetRun> runs) {
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    const double gained = runs[i].time.total() / runs[i + 1].time.total() - 1;
    const double added = static_cast<double>(runs[i + 1].prediction.ranks()) /
                             static_cast<double>(runs[i].prediction.ranks()) -
                         1;
    if (gained < kPaying * added) return i;
  }
  return std::nullopt;
}

}  // namespace tbdsim
