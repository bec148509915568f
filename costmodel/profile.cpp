#include "costmodel/profile.h"

#include "hwspecs/base/quantity.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

constexpr double kLeastEfficiency = 0.001;
constexpr double kMostEfficiency = 2.0;  // clocks above the quoted one and caches can exceed the data sheet
constexpr double kMostSpread = 3.0;

Efficiency<double> read_efficiency(const SpecNode& node) {
  Efficiency<double> efficiency{};
  node.map([&](SpecMap& m) {
    efficiency.compute = m.at("compute").number(kLeastEfficiency, kMostEfficiency);
    efficiency.bandwidth = m.at("bandwidth").number(kLeastEfficiency, kMostEfficiency);
    efficiency.overhead_s = m.at("overhead").quantity<Seconds>().si();
  });
  return efficiency;
}

}  // namespace

Profile read_profile(const std::filesystem::path& file) {
  constexpr std::string_view kSourcedKeys[] = {"kinds", "spread"};
  const SpecTree tree = read_spec_file(file);
  Profile profile;
  profile.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    profile.title = m.at("title").text();
    profile.calibrated = m.at("calibrated").flag();
    m.at("kinds").map([&](SpecMap& kinds) {
      for (std::size_t i = 0; i < kKernelKindCount; ++i) {
        profile.kinds[i] = read_efficiency(kinds.at(kKernelKindNames[i]));
      }
    });
    profile.spread = m.at("spread").number(0, kMostSpread);
    profile.sources = read_sources(m, kSourcedKeys);
  });
  return profile;
}

}  // namespace tbdsim
