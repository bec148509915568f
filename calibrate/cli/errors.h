// `tbd-calibrate errors`: measured calls beside what a profile predicts for them.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct ErrorsCommand {
  std::vector<std::string> files;
  std::string profile;
  std::string format = "table";
  std::string output;
  bool each = false;  // a row for each call instead of one for each group
};

void errors_command(const ErrorsCommand& command, const ProgramContext& context);

}  // namespace tbdsim
