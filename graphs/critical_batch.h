// Whether runs to a target tell the batch at which training takes twice as many epochs.
#pragma once

#include "graphs/convergence_law.h"

namespace tbdsim {

// Limits between which a fit looks for B_crit, over the smallest and over the largest batch.
inline constexpr double kLeastCritical = 0.1, kLargestCritical = 1000;

// Whether points between the smallest and the largest batch tell B_crit: it is not at a limit, to the four
// digits of a written law.
[[nodiscard]] bool tells_critical_batch(const ConvergenceLaw& law, double smallest, double largest);

}  // namespace tbdsim
