#include "simulate/scenario_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

std::int64_t count_of(std::string_view key, const std::string& text) {
  const auto number = parse_whole_number(text);
  if (number && *number >= 1 && *number <= kMostSamples) return *number;
  throw UsageError(fmt::format("{}: {} is no whole number from 1 to {}", key, in_quotes(text), kMostSamples));
}

constexpr std::array<ScenarioKey, 12> kKeys = {{
    {"model", [](Scenario& s, const std::string& v) { s.model = v; },
     [](Library& l, const std::string& v) { (void)l.model(v); }},
    {"framework", [](Scenario& s, const std::string& v) { s.framework = v; },
     [](Library& l, const std::string& v) { (void)l.framework(v); }},
    {"variant", [](Scenario& s, const std::string& v) { s.variant = v; }, nullptr},
    {"precision", [](Scenario& s, const std::string& v) { s.precision = v; },
     [](Library&, const std::string& v) { (void)find_precision(v); }},
    {"dataset", [](Scenario& s, const std::string& v) { s.dataset = v; },
     [](Library& l, const std::string& v) { (void)l.dataset(v); }},
    {"profile", [](Scenario& s, const std::string& v) { s.profile = v; },
     [](Library& l, const std::string& v) { (void)l.profile(v); }},
    {"sequence_length",
     [](Scenario& s, const std::string& v) { s.sizes["sequence_length"] = count_of("sequence_length", v); },
     nullptr},
    {"image_size",
     [](Scenario& s, const std::string& v) { s.sizes["image_size"] = count_of("image_size", v); }, nullptr},
    {"rois", [](Scenario& s, const std::string& v) { s.sizes["rois"] = count_of("rois", v); }, nullptr},
    {"gpu", [](Scenario& s, const std::string& v) { s.gpu = v; },
     [](Library& l, const std::string& v) { (void)l.gpu(v); }},
    {"batch", [](Scenario& s, const std::string& v) { s.batch = count_of("batch", v); }, nullptr},
    {"tokens", [](Scenario& s, const std::string& v) { s.tokens = count_of("tokens", v); }, nullptr},
}};

}  // namespace

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
