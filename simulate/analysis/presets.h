// Named sets of changes in YAML, of the catalogue (simulate/presets/) or a file of the user's own:
// `set: {gpu.memory_bandwidth: +50%, precision: amp}`, with a `title` and a `source`.
#pragma once

#include <filesystem>
#include <string>

#include "hwspecs/base/spec_change.h"

namespace tbdsim {

struct Preset {
  std::string title;  // may be empty
  SpecChanges set;
};

// Throws UsageError or SpecError.
[[nodiscard]] Preset read_preset(const std::filesystem::path& file);

}  // namespace tbdsim
