// `tbd-calibrate fit-intervals`: measured training runs -> what the intervals of predictions are made of.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct IntervalFitCommand {
  std::vector<std::string> files;  // tables of runs
};

void interval_fit_command(const IntervalFitCommand& command, const ProgramContext& context);

}  // namespace tbdsim
