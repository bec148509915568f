#include <memory>

#include "hwspecs/base/error.h"
#include "simulate/commands/command.h"
#include "simulate/commands/options.h"
#include "simulate/named_changes.h"
#include "simulate/whatif_report.h"

namespace tbdsim {
namespace {

struct WhatifOptions {
  ScenarioOptions scenario;
  ClusterOptions cluster;
  std::vector<std::string> changes;  // "gpu.memory_bandwidth=+50%"
  std::vector<std::string> files;
  bool bounds = false;
  bool elasticities = false;
  OutputOptions output;
};

SpecChanges changes_of(const WhatifOptions& options, const Catalog& catalog) {
  SpecChanges changes;
  for (const std::string& name : options.files) {
    const SpecChanges more = read_changes(catalog.find(Kind::change, name)).set;
    changes.insert(changes.end(), more.begin(), more.end());
  }
  for (const std::string& text : options.changes) changes.push_back(parse_change(text));
  return changes;
}

// Without changes and without being asked for either: both.
void run(const WhatifOptions& options, Library& library, std::ostream& out) {
  const Format format = format_of(options.output);
  ScenarioOptions asked = options.scenario;
  const Cluster cluster = cluster_for(options.cluster);
  if (asked.gpu.empty() && !cluster.machine.empty()) asked.gpu = library.machine(cluster.machine).gpu;
  Scenario scenario = scenario_for(asked, library, "a what-if is of one iteration");
  scenario.cluster = cluster;
  const SpecChanges changes = changes_of(options, library.catalog());
  const Prediction before = predict(scenario, library);
  std::vector<Sheet> sheets;
  if (!changes.empty()) {
    const ChangedPrediction after = predict_changed(scenario, changes, library);
    sheets.push_back(before_and_after_sheet(before, after.prediction, changes));
    sheets.push_back(time_parts_sheet(before, after.prediction));
  }
  const bool both = changes.empty() && !options.bounds && !options.elasticities;
  if (options.bounds || both) sheets.push_back(limitless_sheet(before, without_limits(before)));
  if (options.elasticities || both)
    sheets.push_back(sensitivity_sheet(before, sensitivities(scenario, before, library)));
  write_output(options.output, out, [&](std::ostream& to) { write_sheets(to, sheets, format); });
}

}  // namespace

Command add_whatif(CLI::App& root) {
  const auto options = std::make_shared<WhatifOptions>();
  CLI::App* app = root.add_subcommand(
      "whatif",
      "before and after a change of the hardware or the software; without one: what would help most");
  app->add_option("model", options->scenario.model, "a model, or a YAML file");
  add_scenario_options(*app, options->scenario);
  add_cluster_options(*app, options->cluster);
  app->add_option(
         "--set", options->changes,
         "a change, as gpu.memory_bandwidth=+50%, gpu.sm_count=60, framework.factors.convolution=x0.5, "
         "link.network.bandwidth=x2, precision=amp, gpus=4; may be given often")
      ->allow_extra_args(false);
  app->add_option("--changes", options->files,
                  "of 'tbd-sim list changes', or kept in a YAML file; may be given often")
      ->allow_extra_args(false);
  app->add_flag("--bounds", options->bounds,
                "throughput with infinite bandwidth, infinite compute, free launches");
  app->add_flag("--elasticities", options->elasticities, "what each number of the hardware is worth");
  add_output_options(*app, options->output);
  return {app,
          [options](Library& library, std::ostream& out, const Progress&) { run(*options, library, out); }};
}

}  // namespace tbdsim
