// Layers repeat: most kernels of a step come several times, and need be costed once.
#pragma once

#include <vector>

#include "graphs/kernel.h"

namespace tbdsim {

// Sets every kernel's `same_as`.
void find_same(std::vector<Kernel>& kernels);

}  // namespace tbdsim
