// YAML text -> SpecTree.
#pragma once

#include <filesystem>
#include <string>

#include "hwspecs/base/spec_change.h"
#include "hwspecs/base/spec_tree.h"

namespace tbdsim {

// Parses one YAML document. `file` is only used in messages. Throws SpecError.
[[nodiscard]] SpecTree parse_spec(const std::string& yaml, const std::string& file);

// The file parsed, with changes made to it; throws UsageError when it cannot be read or is larger than 1 MiB,
// else SpecError.
[[nodiscard]] SpecTree read_spec_file(const std::filesystem::path& path, const SpecChanges& changes = {});

}  // namespace tbdsim
