// A predicted iteration as a memory snapshot of PyTorch: what torch.cuda.memory._dump_snapshot() writes, for
// the viewer at pytorch.org/memory_viz and torch/cuda/_memory_viz.py. Segments and blocks are those of the
// framework's allocator when most is allocated; the trace is every request of a steady iteration. Frames name
// the layer, and the kernel at which it happened; times are those of the GPU's kernels, in microseconds.
#pragma once

#include <iosfwd>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

void write_memory_snapshot(std::ostream& out, const Prediction& prediction);

}  // namespace tbdsim
