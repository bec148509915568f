// `tbd-calibrate import`: published tables, profiles and own records -> one table of records.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cli/cli.h"
#include "calibrate/cli/profile_records.h"

namespace tbdsim {

struct ImportOptions {
  std::vector<std::string> words;  // [SOURCE] FILES...
  std::string output;
  ProfileOptions profile;
  bool list = false;
};

// Writes the records to `output`, which appears whole or not at all, and counts of the rows read and left out
// to the context's `out`; with `list` only the sources. Throws UsageError without files or output, and as
// import_table.
void import_command(const ImportOptions& options, const ProgramContext& context);

}  // namespace tbdsim
