// Files of this folder, in the formats that `tbd-sim import` knows. Values of real cards and machines, in the
// form that the tools print (README.md beside them).
#pragma once

#include <string>

namespace tbdsim::test {

[[nodiscard]] inline std::string import_file(const std::string& name) {
  return std::string(TBDSIM_SOURCE_DIR "/tests/import/files/") + name;
}

}  // namespace tbdsim::test
