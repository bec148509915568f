#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/prediction/cluster_machine.h"
#include "simulate/report/scaling_table.h"

namespace tbdsim {
namespace {

constexpr int kMostCounts = 100;  // in a list
constexpr std::int64_t kMostGpus = 1000;
constexpr std::int64_t kMostAsked = 1'000'000;

struct ScalingOptions : ScenarioOptions {
  std::vector<std::string> models;  // with a framework behind ':', or that of --framework
  ClusterOptions cluster;           // with lists of GPUs, machines and networks
  OutputOptions output;
};

std::vector<int> counts(std::string_view option, const std::string& text, std::int64_t most) {
  std::vector<int> numbers;
  for (const std::string& part : list_of(text))
    numbers.push_back(static_cast<int>(whole_number(option, part, most)));
  if (numbers.size() > kMostCounts)
    throw UsageError(
        fmt::format("{} has {} numbers; expected up to {}", option, numbers.size(), kMostCounts));
  return numbers;
}

const std::string& or_else(const std::string& text, const std::string& unless) {
  return text.empty() ? unless : text;
}

// The words of --network that describe links within a machine; without any, one empty word.
std::vector<std::string> within_machine(const std::vector<std::string>& networks, const SpecCache& specs) {
  std::vector<std::string> words;
  std::copy_if(networks.begin(), networks.end(), std::back_inserter(words),
               [&](const std::string& word) { return !joins_machines(word, specs.catalog()); });
  if (words.empty()) words.emplace_back();
  return words;
}

// The clusters to predict: one machine for each link within it (one only where --machine gives the links),
// several machines for each network between them.
std::vector<Cluster> clusters_of(const ScalingOptions& options, const SpecCache& specs) {
  ClusterOptions common = options.cluster;
  common.gpus = common.machines = common.network = "";
  std::vector<std::string> between = list_of(options.cluster.network);
  for (const std::string& word : between) {
    if (word.empty()) continue;
    if (!options.cluster.machine.empty() || joins_machines(word, specs.catalog()))
      (void)network_named(word, specs.catalog());
  }
  std::vector<std::string> within{""};
  if (options.cluster.machine.empty()) within = within_machine(between, specs);
  std::vector<Cluster> clusters;
  for (const int machines : counts("--machines", or_else(options.cluster.machines, "1"), kMostAsked)) {
    for (const int gpus : counts("--gpus", or_else(options.cluster.gpus, "1,2,4,8"), kMostGpus)) {
      for (const std::string& network : machines > 1 ? between : within) {
        Cluster cluster = cluster_for(common);
        cluster.gpus = gpus;
        cluster.machines = machines;
        cluster.network = network;
        clusters.push_back(std::move(cluster));
      }
    }
  }
  return clusters;
}

// "resnet50:mxnet" -> "resnet50", "mxnet"; the framework may be left out, and both may be paths.
std::pair<std::string, std::string> model_and_framework(const std::string& text) {
  constexpr std::string_view kEnding = ".yaml";
  const std::size_t file = text.find(std::string(kEnding) + ":");
  const std::size_t colon = file == std::string::npos ? text.find(':') : file + kEnding.size();
  const bool within_path = file == std::string::npos && text.find('/') < colon;
  if (colon == std::string::npos || within_path) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

void append(std::vector<ScalingPoint>& points, ScalingOptions options, const std::string& model,
            std::span<const Cluster> clusters, SpecCache& specs) {
  const auto [name, framework] = model_and_framework(model);
  options.model = name;
  if (!framework.empty()) options.framework = framework;
  if (options.gpu.empty() && !options.cluster.machine.empty())
    options.gpu = specs.machine(options.cluster.machine)->gpu;
  const std::vector<std::string> batches = list_of(options.batch);
  for (std::size_t b = 0; b < std::max<std::size_t>(1, batches.size()); ++b) {
    if (!batches.empty()) options.batch = batches[b];
    for (const Scenario& scenario : scenarios_for(options, specs)) {
      for (ScalingPoint& point : predict_scaling(scenario, clusters, specs))
        points.push_back(std::move(point));
    }
  }
}

void run(const ScalingOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  const std::vector<Cluster> clusters = clusters_of(options, specs);
  std::vector<ScalingPoint> points;
  for (const std::string& model : options.models) append(points, options, model, clusters, specs);
  const Table table = scaling_table(points, advise_largest(points, specs));
  write_output(options.output, out,
               [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
}

}  // namespace

Command add_scaling(CLI::App& root) {
  const auto options = std::make_shared<ScalingOptions>();
  CLI::App* app = root.add_subcommand(
      "scaling",
      "throughput on several GPUs and machines, what the exchange of gradients costs, what to buy");
  app->add_option("models", options->models,
                  "models or YAML files, each with a framework behind ':' if one is meant: my.yaml:pytorch")
      ->required();
  add_scenario_options(*app, *options);
  app->get_option("--batch")->description("samples in one iteration on one GPU; several as 8,16,32");
  add_input_options(*app, options->input);
  add_cluster_options(*app, options->cluster);
  app->get_option("--gpus")->description("GPUs in each machine (default 1,2,4,8)");
  app->get_option("--network")
      ->description(
          "between machines, several as ethernet_1g,infiniband_100g: a link, a file or a rate as "
          "'25 Gbit/s'; of one machine how its GPUs are joined, as pcie3_host or nvlink (default: NVLink "
          "where "
          "boards join such GPUs, else their slots; the table says which)");
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
