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
// the first of them is followed, the rest take the longer of issue and execution each.
#pragma once

#include <span>
#include <vector>

#include "costmodel/estimate.h"
#include "simulate/execution.h"

namespace tbdsim {

// With all repeats. CPU times are those of the issuing thread.
struct KernelSpan {
  Seconds issue;   // the thread turns to it
  Seconds issued;  // it goes on, after waits and the host's work
  Seconds start;   // first execution on the GPU
  Seconds end;     // after the last
};

struct Timeline {
  std::vector<KernelSpan> kernels;  // as TrainingStep::kernels, from the start of the iteration
  Seconds iteration;                // from one to the next
  Seconds gpu_busy;                 // kernels execute; copies are none
  Seconds cpu_busy;                 // the thread issues or works; waiting is not work
};

[[nodiscard]] Timeline simulate_iteration(const TrainingStep& step, std::span<const KernelCost> costs,
                                          double batch, const Execution& execution);

}  // namespace tbdsim
