// Runs tbd-calibrate's command line in-process with the source tree's catalogue.
#pragma once

#include <sstream>
#include <vector>

#include "calibrate/cli/cli.h"
#include "tests/support/cli.h"

namespace tbdsim::test {

[[nodiscard]] inline CliResult calibrate(const std::vector<std::string>& arguments,
                                         bool interrupted = false) {
  std::ostringstream out;
  std::ostringstream err;
  const std::atomic<bool> stop = interrupted;
  CliResult result;
  result.exit_code =
      run_calibrate(arguments, {.out = out, .err = err, .data_dir = TBDSIM_SOURCE_DIR, .interrupted = &stop});
  result.out = out.str();
  result.err = err.str();
  return result;
}

}  // namespace tbdsim::test
