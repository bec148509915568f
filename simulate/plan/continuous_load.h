// Rate that tensor cores sustain while a training run keeps a board at its power limit, with data that are no
// zeros. Kernels are measured alone, in bursts at a higher clock; in a step large products fall to what the
// power allows:
//
//   rate <= tdp * operations for a joule
//
// Small products, which leave tensor cores waiting, do not reach the limit and keep their measured time.
#pragma once

#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// Operations a second of matrix products in this arithmetic; infinite before Ampere, where no run says.
// Operations for a joule in 16 bits: 0.55e12 on Ampere, 0.88e12 on Hopper, 1e12 on Blackwell; in 8 bits
// 1.5e12 and 2.1e12. Fitted to the `fit` rows of runs of several stacks for each (docs/model/clusters.md).
[[nodiscard]] FlopsPerSecond continuous_rate(const GpuSpec& gpu, MathType math);

}  // namespace tbdsim
