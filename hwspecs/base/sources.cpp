#include "hwspecs/base/sources.h"

#include <algorithm>
#include <vector>

#include "hwspecs/base/suggest.h"

namespace tbdsim {

Sources read_sources(SpecMap& map, std::span<const std::string_view> keys) {
  std::vector<std::string> present;   // every key of the file may have a source
  std::vector<std::string> required;  // these must
  Sources changed;                    // these have none of the file's
  for (const SpecEntry& entry : map.node().tree().entries) {
    if (entry.key == "sources") continue;
    present.push_back(entry.key);
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) continue;
    if (entry.value.change == SpecTree::Change::none) {
      required.push_back(entry.key);
    } else {
      changed[entry.key] = "what if: " + to_text(entry.value.mark);
    }
  }
  Sources sources;
  if (required.empty() && !changed.empty() && !map.find("sources")) return changed;
  const SpecNode node = map.at("sources");
  node.map([&](SpecMap& m) {
    for (const auto& [key, mark, value] : m.all()) {
      if (std::find(present.begin(), present.end(), key) == present.end()) {
        throw SpecError(mark, "a source for " + in_quotes(key) + ", which this file does not give" +
                                  did_you_mean(key, present));
      }
      sources[key] = value.text();
    }
  });
  for (const std::string& key : required) {
    if (!sources.contains(key))
      node.fail("no source for " + in_quotes(key) + "; expected where its value comes from");
  }
  for (const auto& [key, source] : changed) sources[key] = source;
  return sources;
}

}  // namespace tbdsim
