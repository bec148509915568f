// An engine with two threads, each with a GPU stream of its own (MXNet: MXNET_GPU_WORKER_NTHREADS). They take
// turns at the work that is ready: the model's kernels, up to the next synchronization, and the parameter
// updates.
//
// After a synchronization the updates of the layers whose gradients are complete are ready, before the
// model's next kernels. Each layer's updates go to the thread that is free first, the model's kernels then to
// the next one to be free. For update u on thread t (all times in seconds):
//
//   launch_start[u] = free[t]
//   start[u]        = free[t] + launch + latency      launch: update_overhead, launch_overhead for copies
//   end[u]          = start[u] + run                  run: GPU time of the kernel
//   free[t]         = end[u] + sync_overhead
//
// Kernels of the two streams do not slow each other down: updates move bytes while convolutions multiply.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "graphs/parameter_updates.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

// Schedules the parameter updates of one iteration. Times are in seconds from its start.
class AsyncUpdates {
 public:
  // All arguments must outlive this. The spans of updates are written to `spans`.
  AsyncUpdates(const TrainingStep& step, std::span<const KernelCost> costs, const LaunchModel& launch_model,
               std::span<KernelSpan> spans);

  // At `now` the launching thread has synchronized with all kernels before k: schedules the updates that are
  // ready. Returns when a thread launches the model's next kernels.
  double schedule_ready(std::size_t k, double now);
  // The same, but returns when both threads are done with the updates that are ready.
  double schedule_and_join(std::size_t k, double now);

  // Both threads are free: each takes one of the chains.
  void assign(const IndependentChains& chains);

  // CPU and GPU time of all updates.
  [[nodiscard]] Seconds cpu_busy() const { return Seconds(cpu_busy_); }
  [[nodiscard]] Seconds gpu_busy() const { return Seconds(gpu_busy_); }
  // Time in which an update runs and no kernel of the model.
  [[nodiscard]] Seconds exposed() const;

 private:
  struct Interval {
    double start, end;
  };

  void note_model_kernels(std::size_t end);
  double overlap_with_updates(const KernelSpan& span);

  const TrainingStep& step_;
  std::span<const KernelCost> costs_;
  const LaunchModel& launch_model_;
  std::span<KernelSpan> spans_;

  std::array<double, 2> free_{};                    // when each thread is
  std::size_t model_thread_ = 0;                    // that launches the model's kernels
  std::size_t model_kernel_ = 0;                    // the first of the model not yet noted
  std::size_t next_update_ = 0;                     // of the step's updates
  double last_update_end_ = 0;                      // of those scheduled, with its synchronization
  std::array<std::vector<Interval>, 2> updates_;    // GPU times on each thread's stream, in order
  std::array<std::size_t, 2> first_overlapping_{};  // of these, for the newest kernel of the model
  double overlap_ = 0;                              // of updates with kernels of the model
  double cpu_busy_ = 0, gpu_busy_ = 0;
};

}  // namespace tbdsim
