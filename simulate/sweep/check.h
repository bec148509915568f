// Errors of a sweep as a whole, found before its first point is predicted.
#pragma once

#include "simulate/sweep/sweep.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Throws UsageError or SpecError: axes that contradict one another or are missing, names and keys that do not
// exist, more points than kMostPoints. Combinations that are impossible (a variant that a framework does not
// train) are left to the points.
void check(const Sweep& sweep, SpecCache& specs);

}  // namespace tbdsim
