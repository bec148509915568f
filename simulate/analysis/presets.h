// Changes kept in YAML, in the catalogue (simulate/presets/) or in a file of the user's own:
// `set: {gpu.memory_bandwidth: +50%, precision: amp}`, with a `title` and a `source`.
#pragma once

#include <filesystem>
#include <string>

#include "hwspecs/base/spec_change.h"

namespace tbdsim {

struct NamedChanges {
  std::string title;  // may be empty
  SpecChanges set;
};

// Throws UsageError or SpecError.
[[nodiscard]] NamedChanges read_changes(const std::filesystem::path& file);

}  // namespace tbdsim
