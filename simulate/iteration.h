// Kernel costs -> when each kernel runs. Kernels run one after another on one GPU stream and the CPU is never
// the limit; launch queues, synchronisation and data loading come with their own constants later.
#pragma once

#include <span>
#include <vector>

#include "costmodel/estimate.h"

namespace tbdsim {

struct KernelSpan {
  Seconds start;
  Seconds end;  // after all its repeats
};

struct Timeline {
  std::vector<KernelSpan> kernels;  // as TrainingStep::kernels
  Seconds iteration;                // the end of the last one
};

[[nodiscard]] Timeline simulate_iteration(const TrainingStep& step, std::span<const KernelCost> costs);

}  // namespace tbdsim
