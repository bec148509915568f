#include "simulate/validation/tta_rules.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"
#include "simulate/framework/sync_method.h"
#include "simulate/job/job_request.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostRuns = 1000;
constexpr std::int64_t kMostGpus = 1'000'000;
constexpr std::int64_t kLargestSize = 1'000'000;

std::map<std::string, std::string> read_names(const SpecNode& node) {
  std::map<std::string, std::string> names;
  node.map([&](SpecMap& m) {
    for (const auto& item : m.all()) names[item.name] = item.node.text();
  });
  return names;
}

TimedParts read_timed(const SpecNode& node) {
  TimedParts timed;
  node.map([&](SpecMap& m) {
    timed.startup = m.at("startup").flag();
    timed.checkpoints = m.at("checkpoints").flag();
  });
  return timed;
}

// All entries but these.
JobSettings read_settings(SpecMap& m, std::span<const std::string_view> read = {}) {
  JobSettings settings;
  for (const auto& [key, mark, value] : m.all()) {
    if (std::find(read.begin(), read.end(), key) != read.end()) continue;
    if (!is_job_key(key)) value.fail("is no key of a job of 'tbd-sim plan'");
    settings.emplace_back(key, value.text());
  }
  return settings;
}

std::vector<ScriptedLayout> read_layouts(const SpecNode& node) {
  constexpr std::string_view kOfLayout[] = {"round", "gpu", "gpus", "most"};
  std::vector<ScriptedLayout> layouts;
  for (const SpecNode& item : node.list()) {
    item.map([&](SpecMap& m) {
      ScriptedLayout& layout = layouts.emplace_back();
      if (const auto round = m.find("round")) layout.round = round->text();
      if (const auto gpu = m.find("gpu")) layout.gpu = gpu->text();
      layout.gpus = layout.most = m.at("gpus").count(1, kMostGpus);
      if (const auto most = m.find("most")) layout.most = most->count(layout.gpus, kMostGpus);
      layout.settings = read_settings(m, kOfLayout);
    });
  }
  return layouts;
}

Sizes read_sizes(const SpecNode& node) {
  Sizes sizes;
  node.map([&](SpecMap& m) {
    for (const auto& item : m.all()) sizes[item.name] = item.node.count(1, kLargestSize);
  });
  return sizes;
}

BenchmarkRules read_benchmark(const SpecNode& node) {
  BenchmarkRules rules;
  node.map([&](SpecMap& m) {
    rules.model = m.at("model").text();
    if (const auto job = m.find("job")) {
      job->map([&](SpecMap& keys) { rules.job = read_settings(keys); });
      if (const auto layouts = m.find("layouts")) rules.layouts = read_layouts(*layouts);
    } else {
      rules.variant = m.at("variant").text();
      rules.framework = m.at("framework").text();
      if (const auto variants = m.find("variants")) rules.variants = read_names(*variants);
    }
    if (const auto precisions = m.find("precisions")) rules.precisions = read_names(*precisions);
    if (const auto target = m.find("target")) rules.target = target->text();
    rules.runs = static_cast<int>(m.at("runs").count(1, kMostRuns));
    rules.dropped = static_cast<int>(m.at("dropped").count(0, (rules.runs - 1) / 2));
    if (const auto unit = m.find("tokens_per_sample")) rules.batch_unit = unit->number(1, kLargestSize);
    if (const auto exchange = m.find("exchange")) {
      require_sync_method(*exchange);
      rules.exchange = exchange->text();
    }
    if (const auto resident = m.find("resident")) rules.resident = resident->quantity<Bytes>();
    if (const auto loading = m.find("loading")) rules.loading = loading->quantity<Seconds>();
    if (const auto spread = m.find("spread")) rules.spread = spread->number(0, 1);
    if (const auto sizes = m.find("sizes")) rules.sizes = read_sizes(*sizes);
  });
  return rules;
}

EarlierRounds read_earlier(const SpecNode& node) {
  EarlierRounds earlier;
  node.map([&](SpecMap& m) {
    for (const std::string& round : m.texts("rounds")) earlier.rounds.insert(round);
    for (const std::string& benchmark : m.texts("tuned")) earlier.tuned.insert(benchmark);
    earlier.frameworks = read_names(m.at("frameworks"));
    m.at("sizes").map([&](SpecMap& named) {
      for (const auto& item : named.all()) earlier.sizes[item.name] = read_sizes(item.node);
    });
  });
  return earlier;
}

}  // namespace

SuiteRules read_suite_rules(const std::filesystem::path& file) {
  const SpecTree tree = read_spec_file(file);
  SuiteRules rules;
  SpecNode(tree).map([&](SpecMap& m) {
    rules.title = m.at("title").text();
    rules.source = m.at("source").text();
    rules.timed = read_timed(m.at("timed"));
    rules.precisions = read_names(m.at("precisions"));
    rules.machines = read_names(m.at("machines"));
    m.at("domains").map([&](SpecMap& domains) {
      for (const auto& item : domains.all()) rules.domains[item.name] = item.node.count(1, kLargestSize);
    });
    rules.network = m.at("network").text();
    if (const auto earlier = m.find("earlier")) rules.earlier = read_earlier(*earlier);
    if (const auto reasons = m.find("not_predicted")) rules.not_predicted = read_names(*reasons);
    m.at("benchmarks").map([&](SpecMap& named) {
      for (const auto& item : named.all()) rules.benchmarks[item.name] = read_benchmark(item.node);
    });
    m.at("sources").map([&](SpecMap& sources) { (void)sources.all(); });
  });
  return rules;
}

BenchmarkRules benchmark_in(const SuiteRules& rules, const std::string& benchmark, const std::string& round) {
  const auto found = rules.benchmarks.find(benchmark);
  if (found == rules.benchmarks.end()) {
    const auto reason = rules.not_predicted.find(benchmark);
    throw UsageError(
        "benchmark " + in_quotes(benchmark) + ": " +
        (reason == rules.not_predicted.end() ? "no network of it in the catalogue" : reason->second));
  }
  BenchmarkRules changed = found->second;
  if (!rules.earlier.rounds.contains(round) || rules.earlier.tuned.contains(benchmark)) return changed;
  const auto framework = rules.earlier.frameworks.find(changed.framework);
  if (framework != rules.earlier.frameworks.end()) changed.framework = framework->second;
  const auto sizes = rules.earlier.sizes.find(benchmark);
  if (sizes != rules.earlier.sizes.end()) changed.sizes = sizes->second;
  return changed;
}

const std::string& precision_of(const SuiteRules& rules, const BenchmarkRules& benchmark,
                                const std::string& called, const std::string& gpu) {
  const std::string name = called.empty() ? "unknown" : called;
  for (const auto* names : {&benchmark.precisions, &rules.precisions}) {
    for (const std::string& key : {name + " on " + gpu, name}) {
      if (const auto found = names->find(key); found != names->end()) return found->second;
    }
  }
  throw UsageError("unknown precision " + in_quotes(called));
}

Seconds result_of(std::vector<Seconds> times, const BenchmarkRules& rules) {
  assert(times.size() > static_cast<std::size_t>(2 * rules.dropped));
  std::sort(times.begin(), times.end());
  const auto first = times.begin() + rules.dropped;
  const auto last = times.end() - rules.dropped;
  Seconds sum;
  for (auto time = first; time != last; ++time) sum += *time;
  return sum / static_cast<double>(std::distance(first, last));
}

}  // namespace tbdsim
