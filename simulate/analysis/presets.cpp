#include "simulate/analysis/presets.h"

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

NamedChanges read_changes(const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  NamedChanges changes;
  SpecNode(tree).map([&](SpecMap& m) {
    if (const auto title = m.find("title")) changes.title = title->text();
    if (const auto source = m.find("source")) (void)source->text();
    m.at("set").map([&](SpecMap& set) {
      for (const auto& [name, mark, node] : set.all())
        changes.set.push_back(parse_change(name + "=" + node.text()));
    });
  });
  return changes;
}

}  // namespace tbdsim
