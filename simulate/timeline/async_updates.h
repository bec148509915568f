// An engine with two workers, each a CPU thread and a GPU stream (MXNet: MXNET_GPU_WORKER_NTHREADS). They
// take what is ready in turn: the kernels of the model, a segment at a time, and updates of parameters.
//
// When a worker has waited for a segment, the updates of the layers that are through with it are ready,
// before the next segment. Each goes to the worker that is free first, the segment then to the next one to be
// free:
//
//   turned[u] = max(ready, free[worker])                     start[u] = turned[u] + issue time + latency
//   end[u]    = start[u] + time[u]                           free[worker] = end[u] + wait
//
// for every kernel of the update phase of a layer, one after another: optimizer, copies of the weights.
// Kernels on two streams do not slow each other: updates move bytes while convolutions multiply.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "graphs/parameter_updates.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

class UpdateWorkers {
 public:
  // All outlive this; the spans of updates are written.
  UpdateWorkers(const TrainingStep& step, std::span<const KernelCost> costs, const LaunchModel& execution,
                std::span<KernelSpan> spans);

  // The thread has waited for all kernels before k. Returns when a worker takes the next segment.
  double after_segment(std::size_t k, double now);
  // The same where updates begin, when both are through with those that are ready.
  double after_updates(std::size_t k, double now);

  // Both are free: each runs one of the chains.
  void run(const IndependentChains& kernels);

  // With updates.
  [[nodiscard]] Seconds cpu_busy() const { return Seconds(cpu_busy_); }
  [[nodiscard]] Seconds gpu_busy() const { return Seconds(gpu_busy_); }
  // How long updates run while no other kernel does.
  [[nodiscard]] Seconds alone() const;

 private:
  struct Interval {
    double start, end;
  };

  // The worker has run kernels of the model up to k.
  void segment(std::size_t k);
  double beside(const KernelSpan& span);

  const TrainingStep& step_;
  std::span<const KernelCost> costs_;
  const LaunchModel& execution_;
  std::span<KernelSpan> spans_;
  std::size_t segment_ = 0;  // the first kernel of the segment
  std::size_t next_ = 0;     // of the step's updates
  std::array<std::vector<Interval>, 2> taken_;
  std::array<std::size_t, 2> open_{};  // of these, the first that the newest kernel may overlap
  std::array<double, 2> free_{};
  std::size_t worker_ = 0;  // that runs the segment
  double until_ = 0;        // updates run, as far as they are taken
  double beside_ = 0;       // a kernel of the model
  double cpu_busy_ = 0, gpu_busy_ = 0;
};

}  // namespace tbdsim
