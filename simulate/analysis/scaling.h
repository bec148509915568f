// How training grows with GPUs and machines, and what would help it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

struct ScalingPoint {
  Prediction prediction;
  double speed_up = 1;    // throughput over that of one GPU
  double efficiency = 1;  // the same over the number of GPUs
  Seconds exposed;        // of an iteration: what it waits for others, contention and stragglers included
  Seconds exchange;       // that gradients are on their way
  std::optional<LinkUse> busiest;  // link
  double load = 0;                 // part of the iteration in which that link is full
};

// One point for each cluster, in their order; the scenario's own cluster is ignored. The GPU is simulated
// once.
[[nodiscard]] std::vector<ScalingPoint> predict_scaling(const Scenario& scenario,
                                                        std::span<const Cluster> clusters, SpecCache& specs);

// One such point, from a prediction for one GPU.
[[nodiscard]] ScalingPoint scaling_point(const Prediction& one, const Cluster& cluster, SpecCache& specs);

// What to buy next.
struct ScalingAdvice {
  // Bandwidth between machines at which an iteration waits for gradients less than kHidden of its time; none
  // where the fastest tried (10 Tbit/s) still waits, and for one machine.
  std::optional<BytesPerSecond> hiding;
  // Machines (GPUs, where there is one machine) from which on one more adds less than half of what it could;
  // none up to the number of GPUs in the machine or kMostMachines.
  std::optional<int> enough;
};
inline constexpr double kHidden = 0.01;
inline constexpr int kMostMachines = 4096;

[[nodiscard]] ScalingAdvice advise(const ScalingPoint& point, SpecCache& specs);

}  // namespace tbdsim
