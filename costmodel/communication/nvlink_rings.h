// Rings that fit on NVLinks between pairs of GPUs, such as the cube mesh of a DGX-1.
#pragma once

#include "hwspecs/machine_spec.h"

namespace tbdsim {

// Number of rings through all of GPUs 0 to gpus - 1 that use no NVLink twice in one direction: each cycle of
// links is a ring in either direction. 0 for more than 8 GPUs.
[[nodiscard]] int nvlink_rings(const NvLink& nvlink, int gpus);

// True if NVLinks form a path through all of GPUs 0 to gpus - 1.
[[nodiscard]] bool nvlink_chain(const NvLink& nvlink, int gpus);

}  // namespace tbdsim
