// Memory shared as it is planned before a run (MXNet): which tensors take whose place is found once, from
// their order and sizes, and every block stays as large as the largest tensor it is for.
//
// A tensor takes the smallest free block of at least its size and at most kMatchRange times that; else the
// largest smaller one down to a part of kMatchRange, which grows; else a new block. The gradient that an
// element-wise kernel reads last makes room for the one it writes. Scratch tensors of a kernel are shared
// like others. What has many pieces takes as many blocks.
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

// Of feature and gradient maps, without what libraries keep. Sizes are compared at a batch of 32; their order
// changes little with the batch.
[[nodiscard]] std::vector<PoolBlocks> planned_pool(const TrainingStep& step);

}  // namespace tbdsim
