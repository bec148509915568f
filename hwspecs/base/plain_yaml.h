// The part of YAML that the catalogue's files are written in, read in one pass: block maps and lists, flow
// maps and lists, scalars that are plain or in quotes without escapes, on one line each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

// The tree that parse_full_yaml() makes of the text; none where the text has anything beyond that part, or is
// wrong.
[[nodiscard]] std::optional<SpecTree> parse_plain_yaml(std::string_view yaml,
                                                       const std::shared_ptr<const std::string>& file);

// The tree of any YAML, through yaml-cpp. Throws SpecError.
[[nodiscard]] SpecTree parse_full_yaml(const std::string& yaml,
                                       const std::shared_ptr<const std::string>& file);

}  // namespace tbdsim
