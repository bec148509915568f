#include "simulate/analysis/target_runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"

namespace tbdsim {
namespace {

// Predictions of one GPU by batch, one for each phase of the target.
class Alone {
 public:
  Alone(const Scenario& scenario, const Resolver& resolve) : scenario_(scenario), resolve_(resolve) {
    scenario_.cluster = {};
  }

  // `batch`: of the run; a phase may train on a multiple of it.
  const std::vector<Prediction>& at(std::int64_t batch) {
    const auto found = made_.find(batch);
    if (found != made_.end()) return found->second;
    Scenario scenario = scenario_;
    scenario.batch = batch;
    std::vector<Prediction> phases = {predict(scenario, resolve_)};
    const auto to = phases.front().convergence;
    if (to->phases.size() > 1) {
      phases.clear();
      for (const TrainingPhase& phase : to->phases) phases.push_back(in_phase(scenario, phase));
    }
    return made_.emplace(batch, std::move(phases)).first->second;
  }

 private:
  [[nodiscard]] Prediction in_phase(Scenario scenario, const TrainingPhase& phase) const {
    scenario.batch =
        std::max<std::int64_t>(1, std::llround(static_cast<double>(scenario.batch) * phase.batch));
    for (const auto& [name, size] : phase.sizes) scenario.sizes[name] = size;
    return predict(scenario, resolve_);
  }

  Scenario scenario_;
  const Resolver& resolve_;
  std::map<std::int64_t, std::vector<Prediction>> made_;
};

bool all_fit(const std::vector<Prediction>& phases) {
  return std::all_of(phases.begin(), phases.end(), [](const Prediction& p) { return p.fits; });
}

// The largest batch of a run whose phases all fit.
std::int64_t largest_batch(const std::vector<Prediction>& smallest) {
  double most = static_cast<double>(kMostSamples);
  const std::vector<TrainingPhase>& phases = smallest.front().convergence->phases;
  for (std::size_t i = 0; i < smallest.size(); ++i)
    most = std::min(most, static_cast<double>(smallest[i].largest_batch()) / phases[i].batch);
  return static_cast<std::int64_t>(most);
}

[[noreturn]] void fail_to_fit(const Prediction& p) {
  throw UsageError(
      fmt::format("{} does not fit into the memory of {} at any batch; expected another GPU, or "
                  "'tbd-sim plan', which divides a decoder over GPUs",
                  p.model->name, p.gpu->title));
}

// Powers of two, 3/2 of them, and the largest batch that fits.
std::vector<std::int64_t> candidates(const std::vector<Prediction>& smallest) {
  const std::int64_t most = largest_batch(smallest);
  if (most < 1) fail_to_fit(smallest.front());
  std::vector<std::int64_t> batches;
  for (std::int64_t power = 1; power <= most; power *= 2) {
    batches.push_back(power);
    if (power > 1 && power / 2 * 3 <= most) batches.push_back(power / 2 * 3);
  }
  if (batches.back() != most) batches.push_back(most);
  return batches;
}

// Samples of all GPUs in an iteration of the run, of which a phase may have a multiple.
double run_batch(const std::vector<Prediction>& ones, const Cluster& cluster) {
  const Prediction& first = ones.front();
  return first.batch() / first.convergence->phases.front().batch *
         static_cast<double>(first.batches_read() * cluster.ranks());
}

void require_within_epoch(double batch, const Convergence& to) {
  if (batch <= to.epoch) return;
  throw UsageError(
      fmt::format("a batch of {:.0f} on all GPUs is more than the {:.0f} samples of an epoch; "
                  "expected fewer GPUs or a smaller --batch",
                  batch, to.epoch));
}

// The phase that has the most epochs.
std::size_t longest_phase(const Convergence& to) {
  const auto longest =
      std::max_element(to.phases.begin(), to.phases.end(),
                       [](const TrainingPhase& a, const TrainingPhase& b) { return a.share < b.share; });
  return static_cast<std::size_t>(longest - to.phases.begin());
}

TargetRun run_at(const std::vector<Prediction>& ones, const Cluster& cluster, const Resolver& resolve) {
  const Convergence& to = *ones.front().convergence;
  const double batch = run_batch(ones, cluster);
  require_within_epoch(batch, to);
  std::vector<Prediction> phases;
  for (const Prediction& one : ones) phases.push_back(scaling_point(one, cluster, resolve).prediction);
  TargetRun run;
  run.time = time_of_epochs(phases, batch, epochs_to_target(to, batch));
  const bool fit = all_fit(phases);
  run.prediction = std::move(phases[longest_phase(to)]);
  run.prediction.fits = fit;
  return run;
}

// Nobody knows whether a recipe holds beyond the batches it was run at: the smallest batch is, where it is
// beyond them.
TargetRun best_run(Alone& alone, const Cluster& cluster, const Resolver& resolve) {
  std::optional<TargetRun> best;
  std::vector<Prediction> smallest;
  for (const Prediction& one : alone.at(1))
    smallest.push_back(scaling_point(one, cluster, resolve).prediction);
  for (const std::int64_t batch : candidates(smallest)) {
    const std::vector<Prediction>& ones = alone.at(batch);
    const double together = run_batch(ones, cluster);
    if (best && together > ones.front().convergence->largest_batch()) break;
    TargetRun run = run_at(ones, cluster, resolve);
    const bool better = !best || run.time.total() < best->time.total();
    if (run.prediction.fits && better) best = std::move(run);
  }
  if (!best) fail_to_fit(smallest.front());
  return *std::move(best);
}

// The batch of a GPU of which so many, its own and those of all others, make the global one.
std::int64_t share_of(std::int64_t global, const Cluster& cluster, std::int64_t batches_read) {
  const std::int64_t batches = cluster.ranks() * batches_read;
  if (global % batches == 0) return global / batches;
  const std::int64_t below = std::max<std::int64_t>(global / batches, 1) * batches;
  const std::string of_each = batches_read > 1 ? fmt::format(" of {} batches each", batches_read) : "";
  throw UsageError(
      fmt::format("a global batch of {} on {} GPUs{}: not the same on each; expected a multiple, as {} or {}",
                  global, cluster.ranks(), of_each, below, below + batches));
}

}  // namespace

std::vector<TargetRun> target_runs(const Scenario& scenario, const BatchChoice& batch,
                                   std::span<const Cluster> clusters, const Resolver& resolve) {
  Alone alone(scenario, resolve);
  const std::int64_t batches_read = batch.global ? alone.at(1).front().batches_read() : 1;
  std::vector<TargetRun> runs;
  for (const Cluster& cluster : clusters) {
    if (!batch.each && !batch.global) {
      runs.push_back(best_run(alone, cluster, resolve));
    } else {
      const std::int64_t each = batch.each ? *batch.each : share_of(*batch.global, cluster, batches_read);
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
