// `tbd-calibrate crossval`: how well the formulas predict calls they were not fitted to.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct CrossvalCommand {
  std::vector<std::string> files;
  std::string family;    // empty: all
  std::string protocol;  // empty: all
  std::string format = "table";
  std::string output;
  bool details = false;  // also by phase and by GPU
  bool quick = false;    // a subset that takes two minutes
};

void crossval_command(const CrossvalCommand& options, const ProgramContext& context);

}  // namespace tbdsim
