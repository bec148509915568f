// Kernels with the same work, which are costed once: layers repeat, so most kernels of a step are duplicates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graphs/kernel.h"

namespace tbdsim {

// Sets `duplicate_of` of every kernel.
void mark_duplicates(std::vector<Kernel>& kernels);

// A kernel and those that are the same.
struct KernelRuns {
  std::size_t kernel = 0;  // the first of them
  std::int64_t times = 0;  // that they run in an iteration, all of them together
  double squares = 0;      // sum over them of the square of their repeats
};
[[nodiscard]] std::vector<KernelRuns> kernel_runs(const std::vector<Kernel>& kernels);  // the first first

}  // namespace tbdsim
