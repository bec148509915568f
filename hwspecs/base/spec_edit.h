// Changes single values in the text of a YAML file and leaves the rest, comments and order included, as it
// is.
#pragma once

#include <span>
#include <string>

#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

// The text with `scalar` in the place of the scalar that a path of keys leads to: {"execution", "kernel"}.
// Keys that are not there are added to their map: before its `sources`; else last in the file, first in a map
// within it. Throws SpecError (of `file`) where the path leads to or through anything else, or through a
// value whose end in the text is not certain (a plain one over several lines).
[[nodiscard]] std::string set_spec_value(const std::string& yaml, const std::string& file,
                                         std::span<const std::string> path, const SpecTree& scalar);

}  // namespace tbdsim
