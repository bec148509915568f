// How throughput grows with GPUs and machines, and what would make it grow further.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulate/prediction/prediction.h"
#include "simulate/prediction/resolve.h"

namespace tbdsim {

struct ScalingPoint {
  Prediction prediction;
  double speed_up = 1;             // throughput over that of one GPU
  double efficiency = 1;           // speed_up over the number of GPUs
  Seconds exposed;                 // of an iteration: transfers that are not hidden, contention, stragglers
  Seconds sync;                    // of an iteration: gradients are in transfer
  std::optional<LinkUse> busiest;  // the link with the largest load
  double load = 0;                 // part of the iteration in which that link is full, 0 to 1
  // The network, or the way in which the GPUs of one machine are joined, that is taken where the cluster
  // gives none; empty where it gives one, for one GPU, and within a machine that has a file.
  std::string assumed_network;
};

// ScalingPoint::assumed_network of a cluster.
[[nodiscard]] std::string network_assumed_for(const Cluster& cluster, const GpuSpec& gpu,
                                              const Resolver& resolve);

// One point for each cluster, in their order, all from one simulation of the GPU; the scenario's own cluster
// is ignored.
[[nodiscard]] std::vector<ScalingPoint> predict_scaling(const Scenario& scenario,
                                                        std::span<const Cluster> clusters,
                                                        const Resolver& resolve);

// The point of a cluster. `one` is the prediction for one GPU.
[[nodiscard]] ScalingPoint scaling_point(const Prediction& one, const Cluster& cluster,
                                         const Resolver& resolve);

// Gains of further hardware.
struct ScalingAdvice {
  // The least bandwidth between machines at which an iteration waits for gradients for less than kHidden of
  // its time; none for one machine, and where 10 Tbit/s are not enough.
  std::optional<BytesPerSecond> hiding;
  // The number of machines (of GPUs, for one machine) from which on another one adds less than half of its
  // own throughput; none up to the number of GPUs in the machine, or kMostMachines.
  std::optional<int> enough;
};
inline constexpr double kHidden = 0.01;
inline constexpr int kMostMachines = 4096;

[[nodiscard]] ScalingAdvice advise(const ScalingPoint& point, const Resolver& resolve);

// Advice on the point with the most GPUs for each model, framework, batch and network; none for one GPU. The
// points must outlive it.
struct AdvisedPoint {
  const ScalingPoint* point = nullptr;
  ScalingAdvice advice;
};
[[nodiscard]] std::vector<AdvisedPoint> advise_largest(std::span<const ScalingPoint> points,
                                                       const Resolver& resolve);

}  // namespace tbdsim
