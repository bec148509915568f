// Kernel costs -> when each kernel is issued and runs. Two clocks: a CPU thread issues kernels in program
// order, the GPU executes them in that order.
//
//   issued[i] = max(issued[i-1], end[i-queue]) + issue time        and after the GPU where the thread waits
//   start[i]  = max(end[i-1] + gap, issued[i] + latency)
//   end[i]    = start[i] + time[i]
//
// A copy to the host, the end of a segment, an update (where the framework waits for it) and the end of the
// iteration make the thread wait: issued = max(issued, end) + wait. Work of the host on what was copied
// follows. An iteration starts as the one before it has left both clocks. A kernel that repeats is one block:
// the first of them is followed, the rest take the longer of issue and execution each. Where a framework has
// a second worker, updates run beside (update_workers.h), and two chains of steps that do not wait for each
// other (graphs/independent_chains.h) side by side: each worker issues one, the GPU has time for both,
//   longer of (either alone, the times of all kernels and a wait)
// and the spans of a chain that would take less are stretched.
#pragma once

#include <span>
#include <vector>

#include "costmodel/estimate.h"
#include "simulate/framework/launch_model.h"

namespace tbdsim {

// With all repeats. CPU times are those of the issuing thread.
struct KernelSpan {
  Seconds issue;        // the thread turns to it
  Seconds issued;       // it goes on, after waits and the host's work
  Seconds start;        // first execution on the GPU
  Seconds end;          // after the last
  int worker = 0;       // which thread, and so which stream, where there are two
  bool beside = false;  // an update in no order with the kernels around it
};

struct Timeline {
  std::vector<KernelSpan> kernels;  // as TrainingStep::kernels, from the start of the iteration
  Seconds iteration;                // from one to the next
  Seconds gpu_busy;                 // kernels execute, one or several; copies are none
  double updates_alone = 1;         // part of the time of updates beside in which no other kernel runs
  Seconds cpu_busy;                 // the thread issues or works; waiting is not work
};

// How long kernel k, with all repeats, keeps the GPU busy: its time; of an update beside other kernels, the
// part in which none of them runs.
[[nodiscard]] inline Seconds busy_by(std::size_t k, const TrainingStep& step,
                                     std::span<const KernelCost> costs, const Timeline& timeline) {
  const Seconds time = costs[k].total * static_cast<double>(step.kernels[k].repeat);
  return timeline.kernels[k].beside ? time * timeline.updates_alone : time;
}

// Indices of kernels.
[[nodiscard]] std::vector<std::size_t> in_order_of_issue(const Timeline& timeline);

// Writes where `before`, a timeline of the same step, was.
[[nodiscard]] Timeline simulate_iteration(const TrainingStep& step, std::span<const KernelCost> costs,
                                          double batch, const LaunchModel& execution, Timeline before = {});

}  // namespace tbdsim
