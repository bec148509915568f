// Layers repeat: most kernels of a step come several times, and need be costed once.
#pragma once

#include <vector>

#include "graphs/kernel.h"

namespace tbdsim {

// Sets every kernel's `duplicate_of`.
void mark_duplicates(std::vector<Kernel>& kernels);

}  // namespace tbdsim
