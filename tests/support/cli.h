// Runs the command line in-process with the source tree's catalogue.
#pragma once

#include <string>
#include <vector>

#include "simulate/library.h"

namespace tbdsim::test {

struct CliResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

[[nodiscard]] CliResult run(const std::vector<std::string>& arguments);

// A library over the source tree's catalogue.
[[nodiscard]] Library source_library();

}  // namespace tbdsim::test
