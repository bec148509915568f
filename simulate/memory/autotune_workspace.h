// Scratch memory that is asked for once, when a framework times every algorithm of a convolution before it
// chooses one (TensorFlow's autotune). An allocator's high water has it; later iterations do not need it.
#pragma once

#include "graphs/kernel.h"
#include "hwspecs/base/quantity.h"

namespace tbdsim {

// Of cuDNN's FFT algorithms, which need most: tiles of 32 x 32 become 32 x 18 complex numbers, of inputs,
// filters and outputs, twice:
//   2 x 32 x 18 x 8 B x (N C t + C K + N K t), t = tiles of 32 - (filter - 1) results that cover an image
// 0 with a stride or where that is beyond `limit`. Fitted: VGG-16 on a V100 under TensorFlow (2018) at
// batches of 1, 4 and 16 takes 9217 B for each pair of 512 channels and filters beside weights and maps; 2 x
// 32 x 18 x 8 is 9216. cuDNN does not publish it.
[[nodiscard]] Bytes tried_workspace(const Kernel& kernel, double batch, Bytes limit);

}  // namespace tbdsim
