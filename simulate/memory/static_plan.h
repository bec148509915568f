// Memory shared by a plan made before the run (MXNet): which tensor takes which block is decided once, from
// the tensors' order and sizes, and every block has the size of the largest tensor it is for.
//
// A tensor of b bytes takes the first of these:
//
//   the smallest free block of b to kMatchRange * b bytes
//   the largest free block of b / kMatchRange to b bytes, which grows to b
//   a new block
//
// The gradient that an element-wise kernel reads last frees its block for the gradient that the kernel
// writes. Scratch tensors of a kernel share blocks like others. A tensor of several pieces takes as many
// blocks.
//
// Source: NNVM, src/pass/plan_memory.cc (GraphAllocator::Request, NNVM_EXEC_MATCH_RANGE=16). MXNet's profiler
// of ResNet-50, 16 images, requested 1384.6 MB for feature maps and more; planned here: 1443.8 MB.
#pragma once

#include <cstdint>
#include <vector>

#include "graphs/training_step.h"

namespace tbdsim {

inline constexpr double kMatchRange = 16;

struct PoolBlocks {
  Size bytes;              // of each
  std::int64_t count = 0;  // of this size
};

// The plan's blocks for feature maps and gradient maps, without those that libraries keep. Sizes are compared
// at a batch of 32; their order changes little with the batch.
[[nodiscard]] std::vector<PoolBlocks> planned_pool(const TrainingStep& step);

}  // namespace tbdsim
