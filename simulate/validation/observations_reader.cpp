#include "simulate/validation/observations_reader.h"

#include <fmt/format.h>

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

using Groups = std::map<std::string, std::vector<std::string>>;

std::vector<std::int64_t> read_batches(const SpecNode& node) {
  std::vector<std::int64_t> batches;
  for (const SpecNode& batch : node.list()) {
    batches.push_back(batch.count(1, kMostSamples));
    if (batches.size() > 1 && batches.back() <= batches[batches.size() - 2])
      batch.fail("is not more than the one before; expected ascending batches");
  }
  if (batches.empty()) node.fail("is empty; expected batches");
  return batches;
}

Cluster read_cluster(const SpecNode& node) {
  constexpr std::int64_t kMostMachines = 100'000;
  Cluster cluster;
  node.map([&](SpecMap& m) {
    if (const auto machine = m.find("machine")) cluster.machine = machine->text();
    cluster.gpus = static_cast<int>(m.at("gpus").count(1, kMostMachines));
    if (const auto machines = m.find("machines"))
      cluster.machines = static_cast<int>(machines->count(1, kMostMachines));
    if (const auto network = m.find("network")) cluster.network = network->text();
    if (const auto method = m.find("exchange")) cluster.method = method->text();
  });
  return cluster;
}

ObservedCase read_case(const std::string& name, const SpecNode& node) {
  ObservedCase read;
  read.name = name;
  node.map([&](SpecMap& m) {
    read.model = m.at("model").text();
    read.framework = m.at("framework").text();
    const auto text = [&](const char* key, std::string& value) {
      if (const auto found = m.find(key)) value = found->text();
    };
    text("variant", read.variant);
    text("precision", read.precision);
    text("target", read.target);
    text("gpu", read.gpu);
    const auto tokens = m.find("tokens");
    read.in_tokens = tokens.has_value();
    read.batches = read_batches(tokens ? *tokens : m.at("batches"));
    if (const auto cluster = m.find("cluster")) read.cluster = read_cluster(*cluster);
  });
  return read;
}

// Names of cases, groups replaced by what is in them.
std::vector<std::string> read_cases(const SpecNode& node, const Observations& known, const Groups& groups) {
  std::vector<std::string> cases;
  for (const SpecNode& item : node.is_list() ? node.list() : std::vector<SpecNode>{node}) {
    const std::string name = item.text();
    if (const auto group = groups.find(name); group != groups.end()) {
      cases.insert(cases.end(), group->second.begin(), group->second.end());
    } else if (known.cases.contains(name)) {
      cases.push_back(name);
    } else {
      item.fail("is neither a case nor a group");
    }
  }
  return cases;
}

void read_over(const SpecNode& node, const Observations& known, const Groups& groups, Check& check) {
  const std::map<std::string, Baseline> words = {
      {"batch", Baseline::batch}, {"last_batch", Baseline::last_batch}, {"gpu", Baseline::gpu}};
  const auto word = node.is_list() ? words.end() : words.find(node.text());
  check.over = word == words.end() ? Baseline::cases : word->second;
  if (check.over == Baseline::cases) check.over_cases = read_cases(node, known, groups);
}

Check read_check(const SpecNode& node, const Observations& known, const Groups& groups) {
  constexpr double kMost = 1e15;
  Check check;
  node.map([&](SpecMap& m) {
    check.of = read_cases(m.at("of"), known, groups);
    check.metric = m.at("metric").text();
    if (const auto over = m.find("over")) read_over(*over, known, groups, check);
    if (const auto at = m.find("at")) check.at = at->count(1, kMostSamples);
    if (const auto least = m.find("at_least")) check.at_least = least->number(0, kMost);
    if (const auto most = m.find("at_most")) check.at_most = most->number(0, kMost);
    if (const auto needed = m.find("needed")) check.needed = needed->number(0, 1);
    if (const auto reason = m.find("reason")) check.reason = reason->text();
  });
  if (!check.at_least && !check.at_most) node.fail("has no limit; expected at_least or at_most");
  return check;
}

Observation read_observation(const SpecNode& node, const Observations& known, const Groups& groups) {
  constexpr std::int64_t kMostNumber = 999;
  Observation read;
  node.map([&](SpecMap& m) {
    read.number = static_cast<int>(m.at("number").count(1, kMostNumber));
    read.statement = m.at("statement").text();
    if (const auto printed = m.find("printed")) read.printed = printed->text();
    if (const auto why = m.find("not_decidable")) {
      read.not_decidable = why->text();
      return;
    }
    for (const SpecNode& check : m.at("checks").list())
      read.checks.push_back(read_check(check, known, groups));
  });
  return read;
}

}  // namespace

Observations read_observations(const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  Observations read;
  SpecNode(tree).map([&](SpecMap& m) {
    read.title = m.at("title").text();
    read.source = m.at("source").text();
    read.gpu = m.at("gpu").text();
    read.other_gpu = m.at("other_gpu").text();
    m.at("cases").map([&](SpecMap& cases) {
      for (const auto& item : cases.all()) read.cases[item.name] = read_case(item.name, item.node);
    });
    Groups groups;
    m.at("groups").map([&](SpecMap& named) {
      for (const auto& item : named.all()) groups[item.name] = read_cases(item.node, read, {});
    });
    for (const SpecNode& observation : m.at("observations").list())
      read.observations.push_back(read_observation(observation, read, groups));
  });
  return read;
}

}  // namespace tbdsim
