// Runs to a target quality on several clusters, at the batch asked for or the one that gets there first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulate/analysis/scaling.h"
#include "simulate/prediction/time_to_target.h"

namespace tbdsim {

// Samples of an iteration: on each GPU, of all together, or (neither) the best of those that fit.
struct BatchChoice {
  std::optional<std::int64_t> each;
  std::optional<std::int64_t> global;
};

struct TargetRun {
  Prediction prediction;  // of the target's longest phase; fits if all phases do
  TimeToTarget time;
  std::string assumed_network;  // as in ScalingPoint
};

// One run for each cluster, in their order. The scenario has a target; its batch and cluster are ignored.
// Throws UsageError, also for a global batch that the GPUs do not divide or that is more than an epoch, and
// where no batch fits.
[[nodiscard]] std::vector<TargetRun> target_runs(const Scenario& scenario, const BatchChoice& batch,
                                                 std::span<const Cluster> clusters, const Resolver& resolve);

// The index of the first run after which further GPUs stop paying: the next run, with more GPUs, gains less
// than half of what they could (time / time of the next - 1 over GPUs of the next / GPUs - 1). None if every
// step pays, or there is none. Precondition: runs have ever more GPUs.
[[nodiscard]] std::optional<std::size_t> last_that_pays(std::span<const TargetRun> runs);
inline constexpr double kPaying = 0.5;

}  // namespace tbdsim
