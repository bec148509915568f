// The time of gradient synchronization between replicas of a model: when gradients are ready on one GPU's
// timeline, when they have passed all stages of the synchronization, and for what part of that the iteration
// waits. All ranks are alike, so one is simulated, whatever their number.
//
//   start[s][b] = max(end[s-1][b], end[s][b-1])    bucket b (gradient_buckets.h) in stage s; end[-1][b]: b is ready
//   end[s][b]   = start[s][b] + time of the stage for the bucket's bytes
//   exposed     = last end - end of the last gradient's kernel + stall of the next forward pass - own work
//   contention  = t_both * share + hidden * bytes / bandwidth
//   stragglers  = sigma * T * E[largest of p standard normal draws]
//   host        = (n - 1) * h
//
//   start        a collective's kernel also waits for the backward kernel that runs at that time to end: on a
//                busy GPU thread blocks are scheduled in launch order, and others find room only between kernels
//   stall        for parameters that arrive in the order in which the forward pass needs them
//   own work     of the step, which the synchronization does: copies of variables that the program keeps on the
//                host, where servers there synchronize, and updates of variables that other GPUs hold
//   t_both       time in which the GPU synchronizes and computes
//   share        part of the GPU's multiprocessors that synchronization occupies, or the framework's interference
//   bytes        that synchronization moves through the GPU's memory; hidden: the part of it for which no kernel
//                waits; bandwidth: of that memory
//   n, h         GPUs of a machine, host work of an iteration before copies to one GPU and after copies from it,
//                where one interpreter does it for all of them; 0 elsewhere
//   sigma, T, p  relative spread kRankSpread, time of an iteration, number of ranks; only for methods in which
//                every rank waits for all others
#pragma once

#include "graphs/training_step.h"
#include "simulate/communication/sync_plan.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

struct SyncTime {
  Seconds total;       // at least one stage works
  Seconds exposed;     // the part of it for which the iteration waits
  Seconds contention;  // by which concurrent kernels take longer
  Seconds stragglers;  // until the slowest rank is ready
  Seconds host;        // until one process has done the host work of the machine's other GPUs
  Bytes gradients;     // sent by a rank, before the algorithm's own factor
  int messages = 0;    // buckets sent

  // Time added to one GPU's iteration.
  [[nodiscard]] Seconds added() const { return exposed + contention + stragglers + host; }
};

// Standard deviation over mean of the time that equal ranks take for an iteration.
inline constexpr double kRankSpread = 0.012;

// Expected largest of so many draws from a normal distribution, in standard deviations above its mean; 0 for
// one: the quantile at (n - 3/8) / (n + 1/4) (Blom 1958).
[[nodiscard]] double expected_largest(std::int64_t draws);

// Bytes of the fullest server over the mean of all, by MXNet's rule for n servers: arrays of a million
// elements and more are cut into n parts, smaller ones go to server (9973 * key) mod n.
[[nodiscard]] double fullest_server(const std::vector<ParameterGradient>& gradients, double batch,
                                    int servers);

// The same where GPUs of one machine are the servers: each array goes whole to the one that has fewest bytes,
// the largest first (MXNet, src/kvstore/comm.h CommDevice::InitMergeBuffer) or, `in_order`, as the forward
// pass needs them (tensorflow/benchmarks at 8fb7908, variable_mgr_util.py ParamServerDeviceSetter, as
// variables are created).
[[nodiscard]] double fullest_gpu(const std::vector<ParameterGradient>& gradients, double batch, int gpus,
                                 bool in_order = false);

// The same where arrays go whole to the servers in turn, as the forward pass needs them
// (tf.train.replica_device_setter, which tensorflow/benchmarks at 8fb7908, benchmark_cnn.py, asks for the
// variables of distributed_replicated).
[[nodiscard]] double fullest_in_turn(const std::vector<ParameterGradient>& gradients, double batch,
                                     int servers);

// Bytes that the busiest of n machines, n > 1, sends over the mean of all, with a worker and a server in
// each: its server sends its arrays to the n - 1 others, its worker sends all that lies elsewhere. `fullest`:
// bytes of its server over the mean.
[[nodiscard]] double busiest_server(double fullest, int machines);

// Bytes of one gradient. Buckets are filled with gradients as stored, so that fewer bytes on the way leave
// each gradient in its bucket (PyTorch's communication hooks compress whole buckets).
struct GradientWidth {
  double stored = 4;
  double sent = 4;
};

// `own_copies`: time by which copies between the GPU and variables on the host lengthen the step itself.
[[nodiscard]] SyncTime simulate_sync(const TrainingStep& step, const Timeline& timeline, double batch,
                                     const GradientWidth& width, const GpuSpec& gpu, const SyncPlan& plan,
                                     Seconds own_copies = {});

}  // namespace tbdsim
