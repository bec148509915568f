// Writes what spec_reader reads.
#pragma once

#include <string>

#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

// The tree as a YAML document. parse_spec() reads the same tree back, but for positions and for quotes around
// text that needs none; a key without a value becomes an empty text.
[[nodiscard]] std::string write_spec(const SpecTree& tree);

// For building trees in code.
[[nodiscard]] SpecTree spec_scalar(std::string text);
[[nodiscard]] SpecTree spec_text(std::string text);  // in quotes
void add_entry(SpecTree& map, std::string key, SpecTree value);

}  // namespace tbdsim
