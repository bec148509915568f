// Replicas of a model on several GPUs: when gradients are ready on one GPU's timeline, when they have been
// exchanged, and what of that the iteration waits for. All ranks are alike, so one is simulated, whatever
// their number.
//
//   message      gradients that are sent together (exchange_messages.h)
//   start[s][m]  = max(end[s-1][m], end[s][m-1])            stage s, message m; stage 0 from when m is ready.
//                  Kernels of a collective wait for the end of the kernel that runs then: on a busy GPU
//                  blocks of a kernel come in the order of launches, and there is room for others between
//                  kernels
//   exposed      = last end - end of the backward pass, and how long the forward pass waits for parameters;
//                  less what the step itself copies of variables on the host, where servers there exchange
//   contention   = time in which the GPU exchanges beside kernels x (its share of the multiprocessors)
//                  + bytes that it moves through the GPU's memory / its bandwidth
//   stragglers   = E[largest of p times] - mean: sigma x time x the normal quantile of (p - 3/8) / (p + 1/4)
//                  (Blom 1958), for all methods that wait for everybody
#pragma once

#include "graphs/training_step.h"
#include "simulate/communication/sync_plan.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

struct SyncTime {
  Seconds total;       // that some stage is at work, from the first start to the last end, idle gaps left out
  Seconds exposed;     // of that the iteration waits
  Seconds contention;  // by which kernels beside it take longer
  Seconds stragglers;  // until the slowest of the ranks is there
  Bytes gradients;     // sent by a rank, before the algorithm's own factor
  int messages = 0;

  // Added to one GPU's iteration.
  [[nodiscard]] Seconds added() const { return exposed + contention + stragglers; }
};

// Spread of the time that alike ranks take for an iteration: standard deviation over mean.
inline constexpr double kRankSpread = 0.012;

// By how many standard deviations the largest of so many draws is expected above the mean; 0 for one.
[[nodiscard]] double expected_largest(std::int64_t draws);

// MXNet's rule for n servers: arrays of a million elements and more are cut into n parts, smaller ones go to
// server (9973 x key) mod n. Bytes of the fullest over the mean.
[[nodiscard]] double fullest_server(const std::vector<ParameterGradient>& gradients, double batch,
                                    int servers);

// `gradient_bytes`: of one element as it is sent.
[[nodiscard]] SyncTime simulate_sync(const TrainingStep& step, const Timeline& timeline, double batch,
                                     double gradient_bytes, const GpuSpec& gpu, const SyncPlan& exchange);

}  // namespace tbdsim
