#include "hwspecs/base/sources.h"

#include <algorithm>
#include <vector>

#include "hwspecs/base/suggest.h"

namespace tbdsim {

Sources read_sources(SpecMap& map, std::span<const std::string_view> keys) {
  std::vector<std::string> present;   // every key of the file may have a source
  std::vector<std::string> required;  // these must
  for (const SpecEntry& entry : map.node().tree().entries) {
    if (entry.key == "sources") continue;
    present.push_back(entry.key);
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) required.push_back(entry.key);
  }
  Sources sources;
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
  return sources;
}

}  // namespace tbdsim
