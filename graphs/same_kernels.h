// Kernels with the same work, which are costed once: layers repeat, so most kernels of a step are duplicates.
#pragma once

#include <vector>

#include "graphs/kernel.h"

namespace tbdsim {

// Sets `duplicate_of` of every kernel.
void mark_duplicates(std::vector<Kernel>& kernels);

}  // namespace tbdsim
