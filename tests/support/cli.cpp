#include "tests/support/cli.h"

#include <sstream>

#include "simulate/cli/cli.h"

namespace tbdsim::test {

namespace {

CliResult run_in(const std::vector<std::string>& arguments, bool ends, bool terminal) {
  const std::atomic<bool> interrupted = ends;
  std::ostringstream out;
  std::ostringstream err;
  CliResult result;
  result.exit_code = run_cli(arguments, {.out = out,
                                         .err = err,
                                         .data_dir = TBDSIM_SOURCE_DIR,
                                         .out_is_terminal = terminal,
                                         .interrupted = &interrupted});
  result.out = out.str();
  result.err = err.str();
  return result;
}

}  // namespace

CliResult run(const std::vector<std::string>& arguments, bool ends) { return run_in(arguments, ends, false); }

CliResult run_on_terminal(const std::vector<std::string>& arguments) {
  return run_in(arguments, false, true);
}

SpecCache source_specs() { return SpecCache(Catalog::from(TBDSIM_SOURCE_DIR)); }

}  // namespace tbdsim::test
