// Checks the program's own kernels and its timing loop on the GPU at hand, against the CPU in double
// precision.
#pragma once

#include <iosfwd>

#include "calibrate/measure/device/session.h"

namespace tbdsim::measure {

// Prints one line per check; returns how many failed.
[[nodiscard]] int self_test(Session& session, std::ostream& out);

}  // namespace tbdsim::measure
