// Rate that tensor cores sustain while a training run keeps a board at its power limit, with data that are no
// zeros. Kernels are measured alone, in bursts at a higher clock; in a step large products fall to the
// clock that the power sustains, by the rule of costmodel/power.h:
//
//   rate <= peak * clock,  tdp / (SMs * GHz) = W * r * (0.15 + 0.85 clock^3)
//
// r: operations a clock of an SM over the most of its generation (rate_share()): half as many draw half the
// power. Below the power at which fewer SMs at a higher clock would do more (w = 0.225 W r), the rate falls
// with the power, so that more SMs or a higher clock never make it smaller. Small products, which leave
// tensor cores waiting, do not reach the limit and keep their measured time. Convolutions have no such limit:
// tuned programs are faster (docs/model/kernel_times.md).
#pragma once

#include <vector>

#include "costmodel/kernel_cost.h"
#include "graphs/training_step.h"
#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// Operations a second of matrix products in this arithmetic; infinite without tensor cores or where the
// board's power is not known. W, in watts for each SM and GHz at the whole clock: 5.9 on Ampere, 8.2 on
// Hopper, 16.2 on Blackwell in 16 bits; 10.5 and 15.4 in 8 bits. Fitted to the `fit` rows of runs of several
// stacks for each (docs/model/clusters.md). Volta, Turing, Ada and Blackwell's boards of 12.x, of which no
// such run is known, are taken as Ampere.
[[nodiscard]] FlopsPerSecond continuous_rate(const GpuSpec& gpu, MathType math);

// Time of a matrix product at that rate; 0 for other kernels and without tensor cores.
[[nodiscard]] Seconds least_continuous_time(const Kernel& kernel, const KernelCost& cost, double batch,
                                            const GpuSpec& gpu);

// Makes each kernel of the step take at least that time.
void limit_to_continuous_rate(const TrainingStep& step, double batch, const GpuSpec& gpu,
                              std::vector<KernelCost>& costs);

}  // namespace tbdsim
