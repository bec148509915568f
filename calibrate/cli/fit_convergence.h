// `tbd-calibrate fit-convergence`: measured epochs over the batch -> the `law` of a target's file.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct ConvergenceCommand {
  std::vector<std::string> files;  // targets of the catalogue, or paths; empty: all
};

// Throws UsageError or SpecError.
void convergence_command(const ConvergenceCommand& command, const ProgramContext& context);

}  // namespace tbdsim
