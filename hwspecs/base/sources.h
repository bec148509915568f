// The map `sources:` of a YAML file, which names the origin of every number.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

using Sources = std::map<std::string, std::string>;  // key -> document, table, record or "estimate: ..."

// Reads the map `sources`. SpecError when one of `keys` is present in the map around it but has no source, or
// when a source names a key that is not there. Other keys may have a source.
[[nodiscard]] Sources read_sources(SpecMap& map, std::span<const std::string_view> keys);

}  // namespace tbdsim
