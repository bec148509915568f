// A benchmark suite: models that are shown together. One YAML file a suite in graphs/suites/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hwspecs/base/sources.h"

namespace tbdsim {

struct Suite {
  std::string name;  // the file's stem
  std::string title;
  std::vector<std::string> models;  // names of the catalogue, in the order in which they are shown
  Sources sources;
};

// Throws UsageError or SpecError.
[[nodiscard]] Suite read_suite(const std::filesystem::path& file);

}  // namespace tbdsim
