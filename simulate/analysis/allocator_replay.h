// Two iterations of a prediction on its framework's allocator: every event of it, and the blocks at the peak.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/memory/caching_allocator.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

struct AllocatorReplay {
  AllocatorUse use;
  std::vector<AllocatorEvent> events;   // of the second iteration
  std::vector<std::size_t> kernels;     // at which each event happened
  std::size_t first = 0;                // events before it allocated tensors that live across iterations
  std::vector<AllocatorBlock> at_peak;  // when most was allocated in it
  std::vector<std::uint64_t> small_segments;
};

// Two iterations of the length that needs most memory; the second reuses the segments of the first.
[[nodiscard]] AllocatorReplay replay(const Prediction& prediction);

}  // namespace tbdsim
