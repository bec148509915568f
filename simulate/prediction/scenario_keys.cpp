#include "simulate/prediction/scenario_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/framework/sync_method.h"
#include "simulate/prediction/cluster_machine.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostGpus = 1000;  // of a machine
constexpr std::int64_t kMostMachines = 1'000'000;

double gradient_bytes(const std::string& text) {
  constexpr double kHalf = 2;
  constexpr double kWhole = 4;
  if (text == "fp16") return kHalf;
  if (text == "fp32") return kWhole;
  throw UsageError("gradients: " + in_quotes(text) + "; expected fp16 or fp32");
}

double part_of(std::string_view key, const std::string& text) {
  const auto part = parse_number(text);
  if (part && *part > 0 && *part <= 1) return *part;
  throw UsageError(
      fmt::format("{}: {}; expected the part that is sent, above 0 and up to 1", key, in_quotes(text)));
}

constexpr std::array<ScenarioKey, 19> kKeys = {{
    {"model", [](Scenario& s, const std::string& v) { s.model = v; }},
    {"framework", [](Scenario& s, const std::string& v) { s.framework = v; }},
    {"variant", [](Scenario& s, const std::string& v) { s.variant = v; }},
    {"precision", [](Scenario& s, const std::string& v) { s.precision = v; }},
    {"dataset", [](Scenario& s, const std::string& v) { s.dataset = v; }},
    {"profile", [](Scenario& s, const std::string& v) { s.profile = v; }},
    {"sequence_length",
     [](Scenario& s, const std::string& v) {
       s.sizes["sequence_length"] = count_of("sequence_length", v, kMostSamples);
     }},
    {"image_size",
     [](Scenario& s, const std::string& v) {
       s.sizes["image_size"] = count_of("image_size", v, kMostSamples);
     }},
    {"rois", [](Scenario& s, const std::string& v) { s.sizes["rois"] = count_of("rois", v, kMostSamples); }},
    {"gpu", [](Scenario& s, const std::string& v) { s.gpu = v; }},
    {"batch", [](Scenario& s, const std::string& v) { s.batch = count_of("batch", v, kMostSamples); }},
    {"tokens", [](Scenario& s, const std::string& v) { s.tokens = count_of("tokens", v, kMostSamples); }},
    {"machine", [](Scenario& s, const std::string& v) { s.cluster.machine = v; }, true},
    {"gpus",
     [](Scenario& s, const std::string& v) {
       s.cluster.gpus = static_cast<int>(count_of("gpus", v, kMostGpus));
     },
     true},
    {"machines",
     [](Scenario& s,
        const std::string&
            v) { s.cluster.machines = static_cast<int>(count_of("machines", v, kMostMachines)); },
     true},
    {"network", [](Scenario& s, const std::string& v) { s.cluster.network = with_space(v); }, true},
    {"exchange", [](Scenario& s, const std::string& v) { s.cluster.method = v; }, true},
    {"gradients", [](Scenario& s, const std::string& v) { s.cluster.gradient_bytes = gradient_bytes(v); },
     true},
    {"compression",
     [](Scenario& s, const std::string& v) { s.cluster.compression = part_of("compression", v); }, true},
}};

}  // namespace

std::int64_t count_of(std::string_view key, const std::string& text, std::int64_t most) {
  const auto number = parse_whole_number(text);
  if (number && *number >= 1 && *number <= most) return *number;
  throw UsageError(fmt::format("{}: {} is no whole number from 1 to {}", key, in_quotes(text), most));
}

std::span<const ScenarioKey> scenario_keys() { return kKeys; }

const ScenarioKey* find_scenario_key(std::string_view name) {
  const auto found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const ScenarioKey& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : &*found;
}

std::vector<std::string> scenario_key_names() {
  std::vector<std::string> names;
  for (const ScenarioKey& key : kKeys) names.emplace_back(key.name);
  return names;
}

}  // namespace tbdsim
