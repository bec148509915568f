// `tbd-calibrate fit`: records -> a profile.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct FitCommand {
  std::vector<std::string> files;
  std::string output;        // one profile ...
  std::string all;           // ... or a folder for those of every GPU and architecture, and the generic one
  std::string gpu;           // empty: the GPU of the records, when they are of one
  std::string architecture;  // of all its GPUs
  bool generic = false;      // of all GPUs
  bool without = false;      // as if nothing had been measured on the GPU
  bool one_gemm = false;     // but one large matrix product
};

void fit_command(const FitCommand& options, const ProgramContext& context);

}  // namespace tbdsim
