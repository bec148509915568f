// Names by which people know a file of the catalogue: its stem, its title, what it is `also_called`, and the
// members of its `family` with what they are called.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tbdsim {

// The name in lower case and without spaces, hyphens and underscores, on which people do not agree: "rtx3090"
// for "RTX 3090". Nor are the brands "NVIDIA", "Tesla" and "GeForce" at the front kept, which only some
// drivers print.
[[nodiscard]] std::string plain_name(std::string_view name);

// The stem, the title, the `also_called` names and those of the family of a file; the stem alone where it
// cannot be read.
[[nodiscard]] std::vector<std::string> other_names(const std::filesystem::path& file);

}  // namespace tbdsim
