#include <memory>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/target_tables.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostTargetRuns = 200;
constexpr std::int64_t kMostGpusOfTarget = 1'000'000;

struct TtaOptions {
  ScenarioOptions scenario;
  std::string target;
  std::string epochs;
  std::string global_batch;
  ClusterOptions cluster;  // with lists of GPUs and machines
  OutputOptions output;
};

BatchChoice batch_choice(const TtaOptions& options) {
  const std::string& each = options.scenario.batch;
  if (!each.empty() && !options.global_batch.empty())
    throw UsageError("--batch and --global-batch are both given; expected one of them");
  if (!options.global_batch.empty())
    return {.each = {}, .global = whole_number("--global-batch", options.global_batch, kMostSamples)};
  if (each.empty() || each == "best") return {};
  if (!parse_whole_number(each))
    throw UsageError("--batch: " + in_quotes(each) + " is neither a whole number nor best");
  return {.each = whole_number("--batch", each, kMostSamples), .global = {}};
}

// Every number of machines with every number of GPUs in each.
std::vector<Cluster> target_clusters(const TtaOptions& options) {
  std::vector<Cluster> clusters;
  ClusterOptions one = options.cluster;
  for (const std::string& machines :
       list_of(options.cluster.machines.empty() ? "1" : options.cluster.machines)) {
    for (const std::string& gpus : list_of(options.cluster.gpus.empty() ? "1" : options.cluster.gpus)) {
      one.machines = std::to_string(whole_number("--machines", machines, kMostGpusOfTarget));
      one.gpus = std::to_string(whole_number("--gpus", gpus, kMostGpusOfTarget));
      clusters.push_back(cluster_for(one));
    }
  }
  if (clusters.size() > kMostTargetRuns)
    throw UsageError(fmt::format("--gpus and --machines make {} clusters; expected up to {}", clusters.size(),
                                 kMostTargetRuns));
  return clusters;
}

void run(const TtaOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  const BatchChoice batch = batch_choice(options);
  const std::vector<Cluster> clusters = target_clusters(options);
  ScenarioOptions asked = options.scenario;
  if (!asked.tokens.empty()) throw UsageError("--tokens: epochs are known over samples; expected --batch");
  asked.batch = "1";  // BatchChoice has it
  if (asked.gpu.empty() && !options.cluster.machine.empty())
    asked.gpu = specs.machine(options.cluster.machine)->gpu;
  Scenario scenario = scenario_for(asked, specs, "time to a target is that of one model");
  scenario.target = options.target.empty() ? std::string(kUsualTarget) : options.target;
  scenario.epochs = given_epochs(options.epochs);
  const Table table = target_table(target_runs(scenario, batch, clusters, specs));
  write_output(options.output, out,
               [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
}

}  // namespace

Command add_tta(CLI::App& root) {
  const auto options = std::make_shared<TtaOptions>();
  CLI::App* app = root.add_subcommand(
      "tta",
      "time, cost and energy until a model reaches its target quality: epochs at that batch, start-up, "
      "training, evaluation and checkpoints, each with how sure it is");
  app->add_option("model", options->scenario.model, "a model with a measured target, or a YAML file");
  add_scenario_options(*app, options->scenario);
  app->get_option("--batch")->description(
      "samples in one iteration on one GPU, or best: the one that gets there first of those that fit "
      "(default best)");
  add_input_options(*app, options->scenario.input);
  add_cluster_options(*app, options->cluster);
  app->get_option("--gpus")->description("GPUs in each machine, several as 1,2,4,8 (default 1)");
  app->get_option("--machines")->description("machines, several as 1,2,4 (default 1)");
  app->add_option("--global-batch", options->global_batch,
                  "instead of --batch: samples of all GPUs together");
  app->add_option(
      "--target", options->target,
      "of 'tbd-sim list targets', as '0.759 top-1', or a YAML file (default: the model's usual one)");
  app->add_option("--epochs", options->epochs, std::string(kEpochsHelp));
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
