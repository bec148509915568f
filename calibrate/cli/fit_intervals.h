// `tbd-calibrate fit-intervals`: measured training runs -> what the intervals of predictions are made of.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct IntervalFitCommand {
  std::vector<std::string> files;        // tables of runs
  std::vector<std::string> development;  // tables whose rows, of either split, forms were chosen with
  std::vector<std::string> errors;       // tables of errors, as `rows` is written
  std::string rows;                      // where the errors of single rows are written; nowhere if empty
};

void interval_fit_command(const IntervalFitCommand& command, const ProgramContext& context);

}  // namespace tbdsim
