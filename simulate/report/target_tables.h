// Runs to a target quality as a table.
#pragma once

#include <span>
#include <string>

#include "hwspecs/base/table.h"
#include "simulate/analysis/target_runs.h"

namespace tbdsim {

inline constexpr Seconds kYear(365.25 * 86400);
inline constexpr const char* kBeyondYear =
    "a time beyond a year is nothing anyone would wait for; expected more or faster GPUs.";

// "48 s", "28.3 min", "5.2 h", "3.1 days", "1.4 years", in so many digits.
[[nodiscard]] std::string duration_text(Seconds time, int digits = 3);

// "more GPUs stop paying at 8 GPUs: ...", or that they pay as far as these runs go. Precondition as of
// last_that_pays().
[[nodiscard]] std::string paying_text(std::span<const TargetRun> runs);

// A row for each run, with the parts of a single one and where more GPUs stop paying as notes.
[[nodiscard]] Table target_table(std::span<const TargetRun> runs);

}  // namespace tbdsim
