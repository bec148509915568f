// A predicted iteration over samples of one padded length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/fast/rate_cache.h"
#include "costmodel/kernel_cost.h"
#include "graphs/dataset.h"
#include "graphs/training_step.h"
#include "simulate/communication/sync_timeline.h"
#include "simulate/memory/memory_plan.h"
#include "simulate/timeline/timeline.h"
#include "simulate/workload/workload.h"

namespace tbdsim {

struct Iteration {
  LengthBucket bucket;
  double share = 1;        // of all iterations, 0 to 1
  std::int64_t batch = 1;  // samples
  double units = 1;        // what throughput counts, in one iteration
  // Parts of a LengthStep of the resolved scenario.
  const TrainingStep* step = nullptr;
  const MemoryOutline* memory = nullptr;
  std::span<const OffloadedActivation> on_host;
  std::span<const KernelRuns> runs;
  std::vector<KernelCost> costs;  // one for each kernel of the step, as it runs among the ranks
  // The same of one rank alone, where ranks share the update among them; empty where they do not.
  std::vector<KernelCost> costs_alone;
  MemoryPlan plan;        // with the scratch memory of these costs
  ConvWorkCache demands;  // filled when rates change
  Timeline timeline;
  Seconds copies;      // by which the timeline is longer because it waits for activations from the host
  Seconds decode;      // of one thread that decodes the batch's samples; 0: unknown, or nothing to decode
  Seconds read;        // of storage for the batches of all GPUs of a machine; 0: they are in its memory
  Seconds input_copy;  // of the batch to the GPU; 0: not counted
  Seconds input;       // of all decoding threads, of storage and of copies beside the kernels: the longest
  bool decodes_in_loop = false;  // and not beside the training, where samples are prefetched
  bool copies_in_order = false;  // the batch is copied between two iterations, not beside the kernels
  SyncTime sync;                 // of gradients; 0 on one GPU

  [[nodiscard]] Seconds computing() const { return timeline.iteration + copies; }
  // The iteration whose training takes so long, with the samples for it.
  [[nodiscard]] Seconds with_input(Seconds training) const {
    if (copies_in_order) training += input_copy;
    return decodes_in_loop ? training + input : std::max(training, input);
  }
  [[nodiscard]] Seconds time() const { return with_input(computing() + sync.added()); }
  // The time if the GPU trained alone.
  [[nodiscard]] Seconds time_alone() const { return with_input(computing()); }
};

// The mean of term(iteration), weighted by the iterations' shares.
template <class Term>
[[nodiscard]] auto mean_over(const std::vector<Iteration>& iterations, Term term) {
  decltype(term(iterations[0]) * 1.0) sum{};
  for (const Iteration& iteration : iterations) sum += term(iteration) * iteration.share;
  return sum;
}

}  // namespace tbdsim
