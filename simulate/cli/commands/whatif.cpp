#include <memory>

#include "hwspecs/base/error.h"
#include "simulate/analysis/presets.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/whatif_tables.h"

namespace tbdsim {
namespace {

struct WhatifOptions {
  ScenarioOptions scenario;
  ClusterOptions cluster;
  std::vector<std::string> changes;  // "gpu.memory_bandwidth=+50%"
  std::vector<std::string> files;
  std::string target;
  bool bounds = false;
  bool elasticities = false;
  OutputOptions output;
};

SpecChanges changes_of(const WhatifOptions& options, const Catalog& catalog) {
  SpecChanges changes;
  for (const std::string& name : options.files) {
    const SpecChanges more = read_preset(catalog.find(Kind::change, name)).set;
    changes.insert(changes.end(), more.begin(), more.end());
  }
  for (const std::string& text : options.changes) changes.push_back(parse_change(text));
  return changes;
}

// Bounds and elasticities are both shown where nothing is changed and neither option is given.
void run(const WhatifOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  ScenarioOptions asked = options.scenario;
  const Cluster cluster = cluster_for(options.cluster);
  if (asked.gpu.empty() && !cluster.machine.empty()) asked.gpu = specs.machine(cluster.machine)->gpu;
  Scenario scenario = scenario_for(asked, specs, "a what-if is of one iteration");
  scenario.cluster = cluster;
  scenario.target = options.target;
  const SpecChanges changes = changes_of(options, specs.catalog());
  if (changes.empty() && !options.target.empty())
    throw UsageError(
        "--target: bounds and elasticities are those of the throughput; expected it with --set or --changes");
  const Prediction before = predict(scenario, specs);
  std::vector<Table> tables;
  if (!changes.empty()) {
    const Prediction after = predict_changed(scenario, changes, specs);
    tables.push_back(before_and_after_table(before, after, changes));
    tables.push_back(time_parts_table(before, after));
  }
  const bool both = changes.empty() && !options.bounds && !options.elasticities;
  if (options.bounds || both) tables.push_back(upper_bounds_table(before, upper_bounds(before)));
  if (options.elasticities || both)
    tables.push_back(sensitivity_table(before, sensitivities(scenario, before, specs)));
  write_output(options.output, out, [&](std::ostream& to) { write_tables(to, tables, format); });
}

}  // namespace

Command add_whatif(CLI::App& root) {
  const auto options = std::make_shared<WhatifOptions>();
  CLI::App* app = root.add_subcommand(
      "whatif",
      "before and after a change of the hardware or the software; without one: what would help most");
  app->add_option("model,--model", options->scenario.model, "a model, or a YAML file");
  add_scenario_options(*app, options->scenario);
  add_input_options(*app, options->scenario.input);
  add_cluster_options(*app, options->cluster);
  app->add_option(
         "--set", options->changes,
         "a change, as gpu.memory_bandwidth=+50%, gpu.sm_count=60, framework.factors.convolution=x0.5, "
         "link.network.bandwidth=x2, precision=amp, gpus=4; may be given often")
      ->allow_extra_args(false);
  app->add_option("--changes", options->files,
                  "of 'tbd-sim list changes', or kept in a YAML file; may be given often")
      ->allow_extra_args(false);
  app->add_option("--target", options->target,
                  "of 'tbd-sim list targets' or usual: also time, cost and energy until it is reached");
  app->add_flag("--bounds", options->bounds,
                "throughput with infinite bandwidth, infinite compute, free launches");
  app->add_flag("--elasticities", options->elasticities, "what each number of the hardware is worth");
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
