// An iteration's tensors as requests to the framework's allocator, kernel by kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulate/memory/caching_allocator.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Iterations of one kind, again and again; both arguments must outlive it. Owners of blocks: a tensor's index
// in TrainingStep::tensors, or -1 - k for scratch memory of kernel k.
class IterationReplay {
 public:
  IterationReplay(const Iteration& iteration, CachingAllocator& allocator);

  // Tensors that stay from one iteration to the next: before the first of all.
  void take_lasting();
  // Tells of each kernel once its memory is taken. Returns the allocator's events until each kernel's end.
  std::vector<std::size_t> run(const std::function<void(std::size_t kernel)>& taken);

 private:
  void take(std::size_t tensor);

  const Iteration& iteration_;
  CachingAllocator& allocator_;
  std::vector<std::size_t> lasting_;
  std::vector<std::vector<std::size_t>> born_, dies_;  // tensors by kernel
  std::vector<std::uint64_t> scratch_;                 // of each kernel
  std::vector<std::vector<std::uint64_t>> addresses_;  // of each tensor's pieces
};

struct ArenaRun {
  AllocatorUse use;
  // Of the second iteration, with the kernel at which each happened; those before `first` made what stays.
  std::vector<AllocatorEvent> events;
  std::vector<std::size_t> kernels;
  std::size_t first = 0;
  std::vector<AllocatorBlock> at_peak;  // when most was allocated in it
  std::vector<std::uint64_t> small_segments;
};

// Two iterations of the length that needs most memory: the second finds what the first left.
[[nodiscard]] ArenaRun replay(const Prediction& prediction);

}  // namespace tbdsim
