// The command line of tbd-calibrate as a function, so that tests run it in-process.
#pragma once

#include <span>
#include <string>

#include "hwspecs/base/program.h"

namespace tbdsim {

// The exit code. Exceptions other than Error and Interrupted are bugs and pass through.
[[nodiscard]] int run_calibrate(std::span<const std::string> arguments, const ProgramContext& context);

}  // namespace tbdsim
