// How PyTorch runs the moments of a group norm.
#pragma once

#include <cstdint>

#include "graphs/kernel.h"

namespace tbdsim {

// Makes of a kernel over images the one of their groups' moments, where a group has `elements` numbers: a
// block of 512 threads goes over each group, each thread over its numbers one after another by a recurrence
// that divides (aten/src/ATen/native/cuda/group_norm_kernel.cu, RowwiseMomentsCUDAKernel). However many
// blocks there are, a thread waits for each number: 0.5 us on an H100 (this project's operators.csv, 128
// groups of 131,072 numbers; stream.h: serial).
inline void as_moments_of_groups(Kernel& kernel, std::int64_t elements) {
  constexpr std::int64_t kThreads = 512;
  kernel.shape = MatrixShape{fixed_size((elements - 1) / kThreads + 1), kThreads};
  kernel.thread_per_row = true;
  kernel.access = Access::elements;
}

}  // namespace tbdsim
