#include "hwspecs/link_spec.h"

#include <fmt/format.h>

#include "hwspecs/base/reference.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

namespace {

SpecChanges changes_of_link(const SpecChanges& changes, const std::string& name) {
  SpecChanges own;
  for (SpecChange change : changes_of(changes, "link")) {
    if (change.path.size() > 1) {
      if (change.path.front() != name) continue;
      change.path.erase(change.path.begin());
    }
    own.push_back(std::move(change));
  }
  return own;
}

}  // namespace

LinkSpec read_link(const std::filesystem::path& file, const SpecChanges& changes) {
  constexpr std::string_view kSourcedKeys[] = {"bandwidth", "efficiency", "latency"};
  constexpr double kLeastEfficiency = 0.01;  // less is a slip of the unit
  const SpecTree tree = read_spec_file(file, changes_of_link(changes, file.stem().string()));
  LinkSpec link;
  link.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    link.title = m.at("title").text();
    link.kind = static_cast<LinkKind>(m.at("kind").one_of(kLinkKindNames));
    link.bandwidth = m.at("bandwidth").quantity<BytesPerSecond>();
    link.efficiency = m.at("efficiency").number(kLeastEfficiency, 1);
    link.latency = m.at("latency").quantity<Seconds>();
    link.sources = read_sources(m, kSourcedKeys);
  });
  return link;
}

LinkSpec link_named(const SpecNode& node, LinkKind kind, const Catalog& catalog, const SpecChanges& changes) {
  LinkSpec link = read_link(file_named(node, Kind::link, catalog), changes);
  if (link.kind != kind) {
    const auto name = [](LinkKind of) { return kLinkKindNames[static_cast<std::size_t>(of)]; };
    node.fail(fmt::format("{} is a link of kind {}; expected one of kind {}", link.name, name(link.kind),
                          name(kind)));
  }
  return link;
}

}  // namespace tbdsim
