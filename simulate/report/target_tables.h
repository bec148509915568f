// Runs to a target quality as a table.
#pragma once

#include <span>
#include <string>

#include "hwspecs/base/table.h"
#include "simulate/analysis/target_runs.h"

namespace tbdsim {

// "48 s", "28.3 min", "5.2 h", "3.1 days", "1.4 years".
[[nodiscard]] std::string duration_text(Seconds time);

// A row for each run, with the parts of a single one and where more GPUs stop paying as notes.
[[nodiscard]] Table target_table(std::span<const TargetRun> runs);

}  // namespace tbdsim
