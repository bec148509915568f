// An iteration's tensors as requests to the framework's allocator, kernel by kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "costmodel/kernel_cost.h"
#include "graphs/training_step.h"
#include "simulate/memory/caching_allocator.h"

namespace tbdsim {

// Bytes of memory that exists only while kernel k runs: temporary tensors and, of a convolution, the
// workspace of its algorithm. `costs`: of the step's kernels at this batch.
[[nodiscard]] Bytes scratch_of(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                               std::size_t k);

// The tensors that begin, or end, with each kernel, in one block of memory.
class TensorsByKernel {
 public:
  // `kernel_of`: of each tensor; `kernels`: their number. A tensor of none is in no list.
  TensorsByKernel(std::span<const std::size_t> kernel_of, std::size_t kernels);
  [[nodiscard]] std::span<const std::size_t> of(std::size_t kernel) const {
    return std::span(tensors_).subspan(first_[kernel], first_[kernel + 1] - first_[kernel]);
  }

 private:
  std::vector<std::size_t> first_;  // of each kernel, its place in tensors_
  std::vector<std::size_t> tensors_;
};

// Owner of workspaces that libraries keep.
inline constexpr int kLibrary = std::numeric_limits<int>::min();

// Repeats one iteration on an allocator; step and allocator must outlive it. The owner of a block is a
// tensor's index in TrainingStep::tensors, -1 - k for scratch memory of kernel k, or kLibrary.
class IterationReplay {
 public:
  // `costs`: of the step's kernels at this batch; only the workspaces of convolutions are used.
  IterationReplay(const TrainingStep& step, std::span<const KernelCost> costs, double batch,
                  CachingAllocator& allocator);

  // Allocates the workspaces that libraries keep and the tensors that live across iterations; call once,
  // before run().
  void allocate_lasting(Bytes kept_workspaces);
  // Runs an iteration. Calls taken(kernel) once the kernel's memory is allocated, and done(kernel) once what
  // it needed last is free; either may be empty.
  void run(const std::function<void(std::size_t kernel)>& taken = {},
           const std::function<void(std::size_t kernel)>& done = {});

 private:
  void allocate(std::size_t tensor);
  [[nodiscard]] std::span<std::uint64_t> pieces_of(std::size_t tensor);

  const TrainingStep& step_;
  double batch_;
  CachingAllocator& allocator_;
  std::vector<std::size_t> lasting_;
  TensorsByKernel born_, dying_;
  std::vector<std::uint64_t> scratch_;    // of each kernel, in bytes
  std::vector<std::size_t> first_piece_;  // of each tensor, its place in addresses_
  std::vector<std::uint64_t> addresses_;
};

}  // namespace tbdsim
