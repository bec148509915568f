#include "tests/support/cli.h"

#include <sstream>

#include "simulate/cli/cli.h"

namespace tbdsim::test {

CliResult run(const std::vector<std::string>& arguments, bool ends) {
  const std::atomic<bool> interrupted = ends;
  std::ostringstream out;
  std::ostringstream err;
  CliResult result;
  result.exit_code = run_cli(
      arguments, {.out = out, .err = err, .data_dir = TBDSIM_SOURCE_DIR, .interrupted = &interrupted});
  result.out = out.str();
  result.err = err.str();
  return result;
}

SpecCache source_specs() { return SpecCache(Catalog::from(TBDSIM_SOURCE_DIR)); }

}  // namespace tbdsim::test
