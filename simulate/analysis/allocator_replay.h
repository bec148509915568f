// An iteration's tensors as requests to the framework's allocator, kernel by kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulate/memory/caching_allocator.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// Repeats one iteration on an allocator; both arguments must outlive it. The owner of a block is a tensor's
// index in TrainingStep::tensors, or -1 - k for scratch memory of kernel k.
class IterationReplay {
 public:
  IterationReplay(const Iteration& iteration, CachingAllocator& allocator);

  // Allocates the tensors that live across iterations; call once, before run().
  void allocate_lasting();
  // Runs an iteration. Calls taken(kernel) once the kernel's memory is allocated. Returns for each kernel the
  // number of the allocator's events until its end.
  std::vector<std::size_t> run(const std::function<void(std::size_t kernel)>& taken);

 private:
  void allocate(std::size_t tensor);

  const Iteration& iteration_;
  CachingAllocator& allocator_;
  std::vector<std::size_t> lasting_;
  std::vector<std::vector<std::size_t>> born_, dies_;  // tensors by kernel
  std::vector<std::uint64_t> scratch_;                 // of each kernel
  std::vector<std::vector<std::uint64_t>> addresses_;  // of each tensor's pieces
};

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
