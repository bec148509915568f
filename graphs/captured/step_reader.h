// Reads a step file (docs/step_file.md), plain or compressed by gzip.
#pragma once

#include <filesystem>

#include "graphs/captured/captured_step.h"

namespace tbdsim {

// True for a name of a step file: it ends in .json or .json.gz.
[[nodiscard]] bool is_step_file(std::string_view path);

// Throws UsageError for a file that cannot be read or is too large; SpecError, which names the place as in
// `operators[12].arguments[3]`, for anything that the format does not have.
[[nodiscard]] CapturedStep read_step_file(const std::filesystem::path& file);

}  // namespace tbdsim
