// `tbd-calibrate fit`: records -> a profile.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"

namespace tbdsim {

struct FitCommand {
  std::vector<std::string> files;
  std::string output;        // file for one profile, or
  std::string all;           // folder for the profiles of every GPU and architecture, and the generic one
  std::string gpu;           // empty: the GPU of the records, when they are of one
  std::string architecture;  // a profile for all its GPUs
  bool generic = false;      // a profile for all GPUs
  bool without = false;      // as if nothing had been measured on the GPU
  bool one_gemm = false;     // the same, but for one large matrix product
  std::vector<std::string> families;  // fitted; the files keep their blocks of others. Empty: all
};

void fit_command(const FitCommand& options, const ProgramContext& context);

}  // namespace tbdsim
