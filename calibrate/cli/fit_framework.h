// `tbd-calibrate fit-framework`: measured training runs -> constants of a framework's file.
#pragma once

#include <string>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct FrameworkFitCommand {
  std::string runs;       // a table of runs
  std::string framework;  // a name of the catalogue, or a path
  std::string constants;  // "kernel,wait,factors.convolution+gemm"
  std::string output;     // empty: only the report
  int gpus = 1;           // of a run at most, in one machine
  bool details = false;   // also each row's errors
};

void framework_fit_command(const FrameworkFitCommand& options, const ProgramContext& context);

}  // namespace tbdsim
