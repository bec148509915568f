// Runs the command line in-process with the source tree's catalogue.
#pragma once

#include <string>
#include <vector>

#include "simulate/workload/spec_cache.h"

namespace tbdsim::test {

struct CliResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// `ends`: as if Ctrl-C had been pressed, for a command that goes on until it is.
[[nodiscard]] CliResult run(const std::vector<std::string>& arguments, bool ends = false);

// The result of run() with standard output on a terminal.
[[nodiscard]] CliResult run_on_terminal(const std::vector<std::string>& arguments);

// A library over the source tree's catalogue.
[[nodiscard]] SpecCache source_specs();

}  // namespace tbdsim::test
