// An iteration's tensors as requests to the framework's allocator, kernel by kernel.
#pragma once

#include <vector>

#include "simulate/memory_arena.h"
#include "simulate/prediction.h"

namespace tbdsim {

// Owners of blocks: a tensor's index in TrainingStep::tensors, or -1 - k for scratch memory of kernel k.
struct ArenaRun {
  ArenaUse use;
  // Of the second iteration, with the kernel at which each happened; those before `first` made what stays.
  std::vector<ArenaEvent> events;
  std::vector<std::size_t> kernels;
  std::size_t first = 0;
  std::vector<ArenaBlock> at_peak;  // when most was allocated in it
  std::vector<std::uint64_t> small_segments;
};

// Two iterations of the length that needs most memory: the second finds what the first left.
[[nodiscard]] ArenaRun replay(const Prediction& prediction);

}  // namespace tbdsim
