// The files that a sweep's rows depend on, so that a sweep begun with other files is not resumed.
#pragma once

#include <string>

#include "hwspecs/base/catalog.h"
#include "simulate/sweep/sweep.h"

namespace tbdsim {

// One line "file PATH DIGEST" for every YAML file of the catalogue and every file of the user's own that an
// axis names, with the files those are based on. PATH starts at the catalogue's folder, so that a copy of the
// catalogue elsewhere goes on with a sweep; a path of the user's own is as it was given. DIGEST is the 64-bit
// FNV-1a hash of the file's bytes, in hexadecimal. Throws UsageError for a file that cannot be read.
[[nodiscard]] std::string input_lines(const Sweep& sweep, const Catalog& catalog);

}  // namespace tbdsim
