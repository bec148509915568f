// Boards that are sold with the same chip, whose kernels one board's measurements describe.
#pragma once

#include "hwspecs/gpu_spec.h"

namespace tbdsim {

// True if both boards have the same SMs and as many of them, and neither has twice the other's power: an A800
// and an A100, a TITAN V and a V100. A P4 (75 W) is no GTX 1080 (180 W).
[[nodiscard]] bool have_same_chip(const GpuSpec& a, const GpuSpec& b);

// How far two boards of one chip are apart: |ln| of the ratio of their bandwidths plus that of their power.
[[nodiscard]] double distance_between_boards(const GpuSpec& a, const GpuSpec& b);

}  // namespace tbdsim
