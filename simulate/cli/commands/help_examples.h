// Examples at the end of each command's help. A test runs every one as written, in a folder with the
// files of docs/examples and a table runs.csv.
#pragma once

#include <string>
#include <string_view>

namespace tbdsim {

// "Examples:\n  tbd-sim list gpus\n..."; empty for a command that has none.
[[nodiscard]] std::string examples_of(std::string_view command);

}  // namespace tbdsim
