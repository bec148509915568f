#include "costmodel/profile/profile.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/spec_writer.h"

namespace tbdsim {
namespace {

constexpr double kLeastEfficiency = 0.001;
constexpr double kMostEfficiency = 2.0;  // clocks above the quoted one and caches can exceed the data sheet
constexpr double kMostSpread = 3.0;
constexpr const char* kRoofline = "uncalibrated";

Efficiency<double> read_efficiency(const SpecNode& node) {
  Efficiency<double> efficiency{};
  node.map([&](SpecMap& m) {
    efficiency.compute = m.at("compute").number(kLeastEfficiency, kMostEfficiency);
    efficiency.bandwidth = m.at("bandwidth").number(kLeastEfficiency, kMostEfficiency);
    efficiency.overhead_s = m.at("overhead").quantity<Seconds>().si();
  });
  return efficiency;
}

void read_kinds(SpecMap& m, Profile& profile) {
  m.at("kinds").map([&](SpecMap& kinds) {
    for (std::size_t i = 0; i < kKernelKindCount; ++i) {
      profile.kinds[i] = read_efficiency(kinds.at(kKernelKindNames[i]));
    }
  });
  profile.spread = m.at("spread").number(0, kMostSpread);
}

// The kinds of another profile, which must be its own: no chains.
void take_kinds(const SpecNode& name, const Catalog& catalog, Profile& profile) {
  std::filesystem::path file;
  try {
    file = catalog.find(Kind::profile, name.text());
  } catch (const UsageError& unknown) {
    name.fail(unknown.what());
  }
  const SpecTree base = read_spec_file(file);
  const bool chained = std::any_of(base.entries.begin(), base.entries.end(),
                                   [](const SpecEntry& entry) { return entry.key == "roofline"; });
  if (chained) name.fail("names a profile that has no kinds of its own");
  SpecMap m{SpecNode(base)};
  read_kinds(m, profile);
}

void read_families(const SpecNode& node, Profile& profile) {
  node.map([&](SpecMap& families) {
    for (std::size_t i = 0; i < kFamilyCount; ++i) {
      const auto blocks = families.find(kFamilyNames[i]);
      if (!blocks) continue;
      for (const SpecNode& block : blocks->list()) {
        profile.families[i].push_back(read_profile_block(block, kFamilyNames[i]));
      }
    }
  });
}

}  // namespace

Profile read_profile(const std::filesystem::path& file, const Catalog& catalog) {
  constexpr std::string_view kSourcedKeys[] = {"kinds", "spread", "families"};
  const SpecTree tree = read_spec_file(file);
  Profile profile;
  profile.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    const SpecNode schema = m.at("schema_version");
    if (schema.count(1) != kProfileSchema) {
      schema.fail(fmt::format("is {}; this program reads {}: fit the profile again", schema.count(1),
                              kProfileSchema));
    }
    profile.title = m.at("title").text();
    if (const auto gpu = m.find("gpu")) profile.gpu = gpu->text();
    if (const auto architecture = m.find("architecture")) profile.architecture = architecture->text();
    if (const auto power = m.find("board_power")) profile.board_power = power->quantity<Watts>().si();
    profile.calibrated = m.at("calibrated").flag();
    if (const auto roofline = m.find("roofline")) {
      take_kinds(*roofline, catalog, profile);
    } else {
      read_kinds(m, profile);
    }
    if (const auto families = m.find("families")) read_families(*families, profile);
    profile.sources = read_sources(m, kSourcedKeys);
  });
  return profile;
}

std::string calibration_text(const Profile& profile) {
  if (!profile.calibrated) return profile.title + " (fitted to no measurement)";
  if (profile.gpu.empty()) return profile.title + " (no kernel of this GPU was measured)";
  std::size_t own = 0;
  std::size_t all = 0;
  for (const auto& blocks : profile.families) {
    all += blocks.size();
    own += static_cast<std::size_t>(
        std::count_if(blocks.begin(), blocks.end(), [](const ProfileBlock& block) { return block.own; }));
  }
  return fmt::format("{} ({} of {} blocks from it, the others from other GPUs)", profile.title, own, all);
}

std::string write_profile(const Profile& profile) {
  SpecTree tree;
  tree.kind = SpecTree::Kind::map;
  add_entry(tree, "schema_version", spec_scalar(std::to_string(kProfileSchema)));
  add_entry(tree, "title", spec_scalar(profile.title));
  if (!profile.gpu.empty()) add_entry(tree, "gpu", spec_scalar(profile.gpu));
  if (!profile.architecture.empty()) add_entry(tree, "architecture", spec_scalar(profile.architecture));
  if (profile.board_power > 0)
    add_entry(tree, "board_power", spec_scalar(fmt::format("{:g} W", profile.board_power)));
  add_entry(tree, "calibrated", spec_scalar(profile.calibrated ? "true" : "false"));
  add_entry(tree, "roofline", spec_scalar(kRoofline));
  SpecTree families;
  families.kind = SpecTree::Kind::map;
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    if (profile.families[i].empty()) continue;
    SpecTree blocks;
    blocks.kind = SpecTree::Kind::list;
    for (const ProfileBlock& block : profile.families[i]) {
      blocks.items.push_back(write_profile_block(block, kFamilyNames[i]));
    }
    add_entry(families, std::string(kFamilyNames[i]), blocks);
  }
  add_entry(tree, "families", families);
  SpecTree sources;
  sources.kind = SpecTree::Kind::map;
  for (const auto& [key, source] : profile.sources) add_entry(sources, key, spec_text(source));
  add_entry(tree, "sources", sources);
  return write_spec(tree);
}

}  // namespace tbdsim
