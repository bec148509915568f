// The observations of a paper with their evidence, as tables: `tbd-sim observations`.
#pragma once

#include <span>
#include <vector>

#include "hwspecs/base/table.h"
#include "simulate/validation/observations.h"

namespace tbdsim {

// One table for each observation: its checks and their evidence.
[[nodiscard]] std::vector<Table> observation_tables(const Observations& observations,
                                                    std::span<const ObservationResult> results);

}  // namespace tbdsim
