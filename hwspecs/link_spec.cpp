#include "hwspecs/link_spec.h"

#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/catalog_reference.h"
#include "hwspecs/base/error.h"
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
    if (const auto simple = m.find("simple_step")) cost.simple_step = simple->quantity<Seconds>();
    if (cost.simple_step == Seconds(0)) cost.root = m.at("root").quantity<Seconds>();
    if (const auto in_switch = m.find("in_switch")) cost.in_switch = in_switch->number(kLeast, 1);
  });
  return cost;
}

// The link's file with the changes of every link, of this one and of its kind.
SpecTree changed_link(const std::filesystem::path& file, const SpecChanges& changes) {
  const SpecTree tree = read_spec_file(file);
  const std::string name = file.stem().string();
  std::string kind;
  for (const SpecEntry& entry : tree.entries) {
    if (entry.key == "kind") kind = entry.value.text;
  }
  SpecTree changed = tree;
  for (const SpecChange& change : changes) {
    if (change.spec == "link" && (change.only.empty() || change.only == name || change.only == kind))
      apply_changes(changed, {change});
  }
  return changed;
}

// A link of the catalogue or a file.
LinkSpec network_of_catalog(const std::string& name, const Catalog& catalog, const SpecChanges& changes) {
  if (!is_path(name) && !catalog.contains(Kind::link, name)) {
    std::vector<std::string> known;
    for (const std::string& link : catalog.names(Kind::link)) {
      if (kind_of_link(link, catalog) == LinkKind::network) known.push_back(link);
    }
    throw UsageError(
        fmt::format("unknown network {}; expected one of {}, a file or a rate such as '25 Gbit/s'{}",
                    in_quotes(name), joined(known), did_you_mean(name, known)));
  }
  LinkSpec link = read_link(catalog.find(Kind::link, name), changes);
  if (link.kind == LinkKind::network) return link;
  throw UsageError(fmt::format("{} is no network; expected one such as {}, or a rate such as '25 Gbit/s'",
                               in_quotes(name), kNetworkLike));
}

}  // namespace

LinkSpec read_link(const std::filesystem::path& file, const SpecChanges& changes) {
  constexpr std::string_view kSourcedKeys[] = {"bandwidth",      "efficiency", "latency",   "across_ports",
                                               "across_sockets", "staged",     "collective"};
  constexpr double kLeastEfficiency = 0.01;  // less is a slip of the unit
  const SpecTree tree = changed_link(file, changes);
  LinkSpec link;
  link.file = file;
  link.name = file.stem().string();
  SpecNode(tree).map([&](SpecMap& m) {
    link.title = m.at("title").text();
    link.kind = static_cast<LinkKind>(m.at("kind").one_of(kLinkKindNames));
    link.bandwidth = m.at("bandwidth").quantity<BytesPerSecond>();
    link.efficiency = m.at("efficiency").number(kLeastEfficiency, 1);
    link.latency = m.at("latency").quantity<Seconds>();
    link.collective.step = link.latency;
    if (const auto part = m.find("across_ports")) link.across_ports = part->number(kLeastEfficiency, 1);
    if (const auto part = m.find("across_sockets"))
      link.across_sockets = part->number(kLeastEfficiency, link.across_ports);
    if (const auto staged = m.find("staged")) link.staged = staged->quantity<BytesPerSecond>();
    if (const auto collective = m.find("collective")) link.collective = read_collective(*collective);
    link.sources = read_sources(m, kSourcedKeys);
  });
  return link;
}

std::optional<LinkKind> kind_of_link(const std::string& name, const Catalog& catalog) {
  if (!catalog.contains(Kind::link, name)) return std::nullopt;
  return read_link(catalog.find(Kind::link, name)).kind;
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

bool is_rate(std::string_view text) {
  if (text.find(' ') != text.npos && text.ends_with("/s")) return true;  // "nan Gbit/s"
  if (text.ends_with(".yaml")) return false;
  const std::size_t first = text.find_first_not_of("+-. ");
  return first != text.npos && text[first] >= '0' && text[first] <= '9' && !text.starts_with("..");
}

LinkSpec network_named(const std::string& name, const Catalog& catalog, const SpecChanges& changes) {
  if (!is_rate(name)) return network_of_catalog(name, catalog, changes);
  const std::string text = with_space(name);
  try {
    if (parse_quantity<BytesPerSecond>(text) <= BytesPerSecond(0)) {
      throw UsageError(
          fmt::format("network {} carries nothing; expected a rate above zero", in_quotes(text)));
    }
  } catch (const std::invalid_argument& wrong) {
    throw UsageError(fmt::format("network {}: {}", in_quotes(text), wrong.what()));
  }
  SpecChanges all{{.spec = "link", .path = {"bandwidth"}, .value = text}};
  all.insert(all.end(), changes.begin(), changes.end());
  LinkSpec link = read_link(catalog.find(Kind::link, kNetworkLike), all);
  link.name = text;
  link.title = "Ethernet, " + text;
  return link;
}

}  // namespace tbdsim
