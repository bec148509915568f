// Feature maps that wait for the backward pass on the host: what their copies cost.
#pragma once

#include <span>

#include "costmodel/estimate.h"
#include "graphs/rewrites/rewrites.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

// By how much an iteration takes longer. Copies run one after another beside the kernels at the rate of the
// bus; the backward pass begins when all are out, a kernel waits for the maps it reads.
[[nodiscard]] Seconds offload_stall(std::span<const OffloadedActivation> maps, const Timeline& timeline,
                                    double batch, const Calibration& calibration);

}  // namespace tbdsim
