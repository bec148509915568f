// Files that are near to one that is read.
#pragma once

#include <string_view>

namespace tbdsim {

// Names a format that is not read and what is expected in its place: "the table of nvidia-smi, which cuts
// names; expected what 'nvidia-smi -q' prints". Empty for any other file.
[[nodiscard]] std::string_view near_format(std::string_view beginning);

}  // namespace tbdsim
