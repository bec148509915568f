// Rate that tensor cores sustain while a training run keeps a board at its power limit, with data that are no
// zeros. Kernels are measured alone, in bursts at a higher clock; in a step large products fall to the clock
// that the power sustains, by the rule of costmodel/power.h:
//
//   rate <= peak * clock,  tdp / (SMs * GHz) = W (0.15 + 0.85 clock^3)
//
// Small products, which leave tensor cores waiting, do not reach the limit and keep their measured time.
#pragma once

#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// Operations a second of matrix products in this arithmetic; infinite before Ampere, where no run says, and
// without tensor cores. W, in watts for each SM and GHz at the whole clock: 5.9 on Ampere, 8.2 on
// Hopper, 16.2 on Blackwell in 16 bits; 10.5 and 15.4 in 8 bits. Fitted to the `fit` rows of runs of several
// stacks for each (docs/model/clusters.md).
[[nodiscard]] FlopsPerSecond continuous_rate(const GpuSpec& gpu, MathType math);

}  // namespace tbdsim
