// Where published tables of kernel times lie: a few rows of each in the source tree, and the whole tables
// where someone has them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace tbdsim::test {

// A few rows of each table.
inline std::filesystem::path few_rows() { return TBDSIM_SOURCE_DIR "/tests/calibrate/tables"; }

// The folder of the whole tables: TBDSIM_REFERENCE/kernels, else ../shared/reference/kernels beside the
// source tree; none where there is no such folder.
inline std::optional<std::filesystem::path> whole_tables() {
  namespace fs = std::filesystem;
  const char* named = std::getenv("TBDSIM_REFERENCE");
  const fs::path reference = named != nullptr && *named != '\0'
                                 ? fs::path(named)
                                 : fs::path(TBDSIM_SOURCE_DIR).parent_path() / "shared/reference";
  return fs::is_directory(reference / "kernels") ? std::optional(reference / "kernels") : std::nullopt;
}

}  // namespace tbdsim::test
