#include "hwspecs/link_spec.h"

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

LinkSpec read_link(const std::filesystem::path& file) {
  constexpr std::string_view kSourcedKeys[] = {"bandwidth", "efficiency", "latency"};
  constexpr double kLeastEfficiency = 0.01;  // less is a slip of the unit
  const SpecTree tree = read_spec_file(file);
  LinkSpec link;
  link.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    link.title = m.at("title").text();
    link.bandwidth = m.at("bandwidth").quantity<BytesPerSecond>();
    link.efficiency = m.at("efficiency").number(kLeastEfficiency, 1);
    link.latency = m.at("latency").quantity<Seconds>();
    link.sources = read_sources(m, kSourcedKeys);
  });
  return link;
}

}  // namespace tbdsim
