#include "simulate/serve/live_query.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/prediction/scenario_keys.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostChanges = 16;
constexpr std::int64_t kMostGpus = 16;
constexpr std::int64_t kMostMachines = 100'000;

void set_scenario(LiveQuery& query, std::string_view key, const std::string& value) {
  find_scenario_key(key)->set(query.scenario, value);
}

void set_gpus(LiveQuery& query, std::string_view key, const std::string& value) {
  query.scenario.cluster.gpus = static_cast<int>(count_of(key, value, kMostGpus));
}

void set_machines(LiveQuery& query, std::string_view key, const std::string& value) {
  query.scenario.cluster.machines = static_cast<int>(count_of(key, value, kMostMachines));
}

void set_network(LiveQuery& query, std::string_view /*key*/, const std::string& value) {
  query.scenario.cluster.network = value;
}

void set_kernels(LiveQuery& query, std::string_view /*key*/, const std::string& value) {
  if (value != "0" && value != "1") throw UsageError("kernels: " + in_quotes(value) + "; expected 0 or 1");
  query.kernels = value == "1";
}

void add_change(LiveQuery& query, std::string_view /*key*/, const std::string& value) {
  SpecChange change = parse_change(value);
  constexpr std::string_view kNumbersBegin = "0123456789+-x";
  if (change.value.empty() || kNumbersBegin.find(change.value[0]) == std::string_view::npos)
    throw UsageError(in_quotes(value) + ": expected a number with its unit, or one as +50%, x2");
  if (change.spec != "gpu" && change.spec != "link") {
    throw UsageError(in_quotes(value) + " changes no hardware; expected a key of the gpu or a link, as " +
                     "gpu.memory_bandwidth=800GB/s");
  }
  query.changes.push_back(std::move(change));
}

struct Parameter {
  std::string_view key;
  void (*set)(LiveQuery& query, std::string_view key, const std::string& value);
};

constexpr Parameter kParameters[] = {{"model", set_scenario},
                                     {"framework", set_scenario},
                                     {"variant", set_scenario},
                                     {"gpu", set_scenario},
                                     {"precision", set_scenario},
                                     {"batch", set_scenario},
                                     {"gpus", set_gpus},
                                     {"machines", set_machines},
                                     {"network", set_network},
                                     {"input", set_scenario},
                                     {"input_workers", set_scenario},
                                     {"input_time", set_scenario},
                                     {"input_bytes", set_scenario},
                                     {"host.cores", set_scenario},
                                     {"host.storage", set_scenario},
                                     {"host.copies", set_scenario},
                                     {"kernels", set_kernels},
                                     {"set", add_change}};

const Parameter& parameter_of(const std::string& key) {
  const auto* const found = std::find_if(std::begin(kParameters), std::end(kParameters),
                                         [&](const Parameter& parameter) { return parameter.key == key; });
  if (found != std::end(kParameters)) return *found;
  std::vector<std::string> keys;
  for (const Parameter& parameter : kParameters) keys.emplace_back(parameter.key);
  throw UsageError("unknown parameter " + in_quotes(key) + did_you_mean(key, keys) + "; expected one of " +
                   joined(keys));
}

}  // namespace

LiveQuery read_query(const QueryParameters& parameters, const Scenario& usual) {
  LiveQuery query{.scenario = usual, .changes = {}};
  std::set<std::string> seen;
  for (const auto& [key, value] : parameters) {
    if (key != "set" && !seen.insert(key).second)
      throw UsageError(in_quotes(key) + " is given twice; expected it once");
    parameter_of(key).set(query, key, value);
  }
  // The usual variant is one of the usual model, for the usual framework.
  const Scenario& s = query.scenario;
  if (!seen.contains("variant") && (s.model != usual.model || s.framework != usual.framework))
    query.scenario.variant.clear();
  if (query.changes.size() > kMostChanges)
    throw UsageError(fmt::format("{} changes; expected up to {}", query.changes.size(), kMostChanges));
  return query;
}

}  // namespace tbdsim
