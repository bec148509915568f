#include "simulate/analysis/presets.h"

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

Preset read_preset(const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  Preset preset;
  SpecNode(tree).map([&](SpecMap& m) {
    if (const auto title = m.find("title")) preset.title = title->text();
    if (const auto source = m.find("source")) (void)source->text();
    m.at("set").map([&](SpecMap& set) {
      for (const auto& [name, mark, node] : set.all())
        preset.set.push_back(parse_change(name + "=" + node.text()));
    });
  });
  return preset;
}

}  // namespace tbdsim
