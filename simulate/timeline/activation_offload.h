// Activations that are offloaded to host memory until the backward pass reads them.
#pragma once

#include <span>

#include "costmodel/estimate.h"
#include "graphs/rewrites/rewrites.h"
#include "simulate/timeline/timeline.h"

namespace tbdsim {

// Time by which the iteration takes longer. Copies run one after another, concurrently with the kernels, at
// the bus's rate: to the host from the last forward kernel that reads the activation, back from when the
// first kernel that reads any offloaded activation would start. That kernel waits until all are copied out;
// every kernel waits for the activations that it reads.
[[nodiscard]] Seconds offload_stall(std::span<const OffloadedActivation> activations,
                                    const Timeline& timeline, double batch, const Calibration& calibration);

}  // namespace tbdsim
