// The parts of a scenario by name, to be set as text: by axes of sweeps and changes of what-ifs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/prediction/scenario.h"

namespace tbdsim {

struct ScenarioKey {
  std::string_view name;  // "model", "gpu", "batch", ... "image_size", "gpus", "network"
  // Throws UsageError for a number out of range.
  void (*set)(Scenario& scenario, const std::string& value);
  bool of_cluster = false;  // a part of Scenario::cluster; these are the last keys
};

// A whole number from 1 to `most`. Throws UsageError.
[[nodiscard]] std::int64_t count_of(std::string_view key, const std::string& text, std::int64_t most);

[[nodiscard]] std::span<const ScenarioKey> scenario_keys();
[[nodiscard]] const ScenarioKey* find_scenario_key(std::string_view name);  // or none
[[nodiscard]] std::vector<std::string> scenario_key_names();

}  // namespace tbdsim
