// Kernel costs -> when each kernel of an iteration is launched and runs.
//
// A CPU thread launches the kernels in program order and the GPU executes them in that order (launch_queue.h:
// equations). The thread synchronizes with the GPU after a copy to the host, after every `kernels_per_sync`
// kernels, after an update and at the end of the iteration, each where the framework does so. An iteration
// starts as the one before it has left CPU and GPU.
//
// Where the engine has two threads, parameter updates run asynchronously (async_updates.h), and two
// independent chains of kernels (graphs/independent_chains.h) run concurrently, each launched by one thread:
//
//   time of both = max(time of the first alone, time of the second alone, sum of all kernels' run times + sync)
//
// because both share the GPU; the spans of a chain that would take less alone are stretched to that time.
#pragma once

#include <span>
#include <vector>

#include "costmodel/estimate.h"
#include "graphs/training_step.h"
#include "simulate/framework/launch_model.h"

namespace tbdsim {

// One kernel with all its repeats. Times from the start of the iteration.
struct KernelSpan {
  Seconds launch_start;       // the thread turns to it
  Seconds launch_end;         // the thread continues, after any synchronization and processing of the result
  Seconds start;              // of the first execution on the GPU
  Seconds end;                // of the last
  int engine_thread = 0;      // 0 or 1: the thread that launches it, and so its stream
  bool async_update = false;  // runs in no fixed order with the kernels around it
};

struct Timeline {
  std::vector<KernelSpan> kernels;  // as TrainingStep::kernels
  Seconds iteration;                // from the start of one to the start of the next
  Seconds gpu_busy;                 // one or more kernels execute; copies do not count
  double exposed_update_share = 1;  // part of the time of asynchronous updates in which no other kernel runs
  Seconds cpu_busy;                 // the launching threads launch or process; waiting does not count
};

// Time for which kernel k, with all repeats, keeps the GPU busy: its run time; for an asynchronous update the
// part in which no other kernel runs.
[[nodiscard]] inline Seconds busy_time(std::size_t k, const TrainingStep& step,
                                       std::span<const KernelCost> costs, const Timeline& timeline) {
  const Seconds time = costs[k].total * static_cast<double>(step.kernels[k].repeat);
  return timeline.kernels[k].async_update ? time * timeline.exposed_update_share : time;
}

// Indices of the kernels by launch_start.
[[nodiscard]] std::vector<std::size_t> in_launch_order(const Timeline& timeline);

// `costs`: of the step's kernels at `batch` samples. The storage of `reuse`, a timeline of the same step, is
// used again.
[[nodiscard]] Timeline simulate_timeline(const TrainingStep& step, std::span<const KernelCost> costs,
                                         double batch, const LaunchModel& launch_model, Timeline reuse = {});

}  // namespace tbdsim
