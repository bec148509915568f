#include <memory>

#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/memory_tables.h"

namespace tbdsim {
namespace {

struct MaxBatchOptions {
  ScenarioOptions scenario;
  OutputOptions output;
};

void run(const MaxBatchOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  ScenarioOptions one_sample = options.scenario;
  one_sample.batch = "1";
  std::vector<LargestBatch> batches;
  for (const Scenario& scenario : scenarios_for(one_sample, specs))
    batches.push_back(largest_batch_of(predict(scenario, specs)));
  write_output(options.output, out, [&](std::ostream& to) {
    const Table table = largest_batch_table(batches);
    write_tables(to, std::span(&table, 1), format);
  });
}

}  // namespace

Command add_max_batch(CLI::App& root) {
  const auto options = std::make_shared<MaxBatchOptions>();
  CLI::App* app =
      root.add_subcommand("max-batch", "the largest batch that fits, and what the next one lacks");
  app->add_option("model,--model", options->scenario.model, "a model, a YAML file, or all (default)");
  add_scenario_options(*app, options->scenario);
  add_output_options(*app, options->output);
  app->remove_option(app->get_option("--batch"));
  app->remove_option(app->get_option("--tokens"));
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
