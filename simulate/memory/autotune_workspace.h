// Scratch memory that is needed once, when a framework times every algorithm of a convolution before it
// chooses one (TensorFlow's autotune). It counts in an allocator's high-water mark; later iterations do not
// need it.
#pragma once

#include "graphs/kernel.h"
#include "hwspecs/base/quantity.h"

namespace tbdsim {

// Bytes of workspace of cuDNN's FFT algorithm, which needs most. It transforms tiles of 32 x 32 numbers to 32
// x 18 complex numbers of 8 B, twice, of inputs, filters and outputs:
//
//   2 * 32 * 18 * 8 B * (N * t * C + C * K + N * t * K)
//
//   N   images; C, K   channels and filters
//   t   tiles that cover an image's results: each gives 32 - (filter side - 1) in each direction
//
// 0 for a convolution with a stride or with filters of 32 and more, for other kernels, and where the
// workspace exceeds `limit`. cuDNN does not publish the formula; it is fitted: VGG-16 on a V100 under
// TensorFlow (2018) at batches of 1, 4 and 16 takes 9217 B for each pair of 512 channels and filters beside
// weights and maps; the formula gives 9216 B.
[[nodiscard]] Bytes autotune_workspace(const Kernel& kernel, double batch, Bytes limit);

}  // namespace tbdsim
