// A benchmark suite: models that are shown together. One YAML file a suite in graphs/suites/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hwspecs/base/sources.h"

namespace tbdsim {

// A model of a suite: a name of the catalogue, or {model: ..., variant: ..., framework: ...}.
struct SuiteModel {
  std::string model;
  std::string variant;    // empty: each framework's own
  std::string framework;  // empty: those that train the variant
};

struct Suite {
  std::string name;  // the file's stem
  std::string title;
  std::vector<SuiteModel> models;  // in the order in which they are shown
  Sources sources;
};

// Throws UsageError or SpecError.
[[nodiscard]] Suite read_suite(const std::filesystem::path& file);

}  // namespace tbdsim
