#include "hwspecs/link_spec.h"

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/reference.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

CollectiveCost read_collective(const SpecNode& node) {
  constexpr double kLeast = 0.05;
  constexpr double kMost = 1.5;
  CollectiveCost cost;
  node.map([&](SpecMap& m) {
    cost.launch = m.at("launch").quantity<Seconds>();
    cost.step = m.at("step").quantity<Seconds>();
    cost.efficiency = m.at("efficiency").number(kLeast, kMost);
    cost.root = m.at("root").quantity<Seconds>();
    if (const auto in_switch = m.find("in_switch")) cost.in_switch = in_switch->number(kLeast, 1);
  });
  return cost;
}

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
  constexpr std::string_view kSourcedKeys[] = {"bandwidth", "efficiency", "latency", "collective"};
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
    link.collective.step = link.latency;
    if (const auto collective = m.find("collective")) link.collective = read_collective(*collective);
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

LinkSpec network_named(const std::string& text, const Catalog& catalog) {
  constexpr std::string_view kLike = "ethernet_25g";  // what is assumed of a rate without a name
  if (text.empty() || text.find_first_of("0123456789") != 0) {
    LinkSpec link = read_link(catalog.find(Kind::link, text));
    if (link.kind == LinkKind::network) return link;
    throw UsageError(fmt::format("{} is no network; expected one such as {}, or a rate such as '25 Gbit/s'",
                                 in_quotes(text), kLike));
  }
  LinkSpec link = read_link(catalog.find(Kind::link, kLike));
  try {
    link.bandwidth = parse_quantity<BytesPerSecond>(text);
  } catch (const std::invalid_argument& wrong) {
    throw UsageError(fmt::format("network {}: {}", in_quotes(text), wrong.what()));
  }
  if (link.bandwidth <= BytesPerSecond(0))
    throw UsageError(fmt::format("network {} carries nothing; expected a rate above zero", in_quotes(text)));
  link.name = text;
  link.title = "Ethernet, " + text;
  return link;
}

}  // namespace tbdsim
