// The call of a measured record as the time formulas need it.
#pragma once

#include <optional>

#include "calibrate/records/record.h"
#include "costmodel/call.h"
#include "hwspecs/base/math_type.h"

namespace tbdsim {

// None for calls without a formula: launches, copies, whole networks; unknown precisions.
[[nodiscard]] std::optional<Call> call_of(const Record& record);

[[nodiscard]] std::optional<MathType> math_of(const Record& record);

}  // namespace tbdsim
