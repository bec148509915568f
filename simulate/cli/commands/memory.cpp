#include <memory>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/analysis/fragmentation.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/export/torch_memory_snapshot.h"
#include "simulate/report/memory_tables.h"

namespace tbdsim {
namespace {

struct MemoryOptions {
  ScenarioOptions scenario;
  std::string view;
  bool timeline = false;  // the view over time
  bool remedies = false;  // what would help
  bool snapshot = false;  // in PyTorch's format
  OutputOptions output;
};

MemoryView view_of(const MemoryOptions& options) {
  if (options.timeline) {
    if (!options.view.empty()) throw UsageError("--timeline is --by time; expected no --by beside it");
    return MemoryView::time;
  }
  const std::string by = options.view.empty() ? std::string(kMemoryViewNames[0]) : options.view;
  return static_cast<MemoryView>(choice("--by", by, {kMemoryViewNames.begin(), kMemoryViewNames.end()}));
}

void write_snapshot(const MemoryOptions& options, SpecCache& specs, std::ostream& out) {
  if (!options.output.format.empty() || !options.view.empty() || options.timeline || options.remedies)
    throw UsageError(
        "--snapshot writes PyTorch's format; expected no --format, --by, --timeline or --remedies beside it");
  const Scenario scenario = scenario_for(options.scenario, specs, "a snapshot is of one iteration");
  const Prediction prediction = predict(scenario, specs);
  write_output(options.output, out, [&](std::ostream& to) { write_memory_snapshot(to, prediction); });
}

void run(const MemoryOptions& options, SpecCache& specs, std::ostream& out) {
  if (options.snapshot) {
    write_snapshot(options, specs, out);
    return;
  }
  const Format format = format_of(options.output);
  const MemoryView view = view_of(options);
  if (options.remedies && (!options.view.empty() || options.timeline))
    throw UsageError("--remedies is a table of its own; expected no --by or --timeline beside it");
  std::vector<Table> tables;
  for (const Scenario& scenario : scenarios_for(options.scenario, specs)) {
    const Prediction prediction = predict(scenario, specs);
    if (options.remedies) {
      std::vector<Saving> savings = remedies(prediction);
      for (Saving& saving : options_that_save(prediction, specs)) savings.push_back(std::move(saving));
      tables.push_back(memory_savings_table(prediction, savings));
    } else if (view == MemoryView::category) {
      tables.push_back(memory_table(prediction, view, reserved_over_sizes(prediction, specs)));
    } else {
      tables.push_back(memory_table(prediction, view));
    }
  }
  write_output(options.output, out, [&](std::ostream& to) { write_tables(to, tables, format); });
}

}  // namespace

Command add_memory(CLI::App& root) {
  const auto options = std::make_shared<MemoryOptions>();
  CLI::App* app =
      root.add_subcommand("memory", "where the GPU's memory goes: by category, by layer, over time");
  app->add_option("model,--model", options->scenario.model, "a model, a YAML file, or all (default)");
  add_scenario_options(*app, options->scenario);
  add_output_options(*app, options->output);
  const std::vector<std::string> views(kMemoryViewNames.begin(), kMemoryViewNames.end());
  app->add_option("--by", options->view, "by " + joined(views) + " (default: " + views[0] + ")");
  app->add_flag("--timeline", options->timeline, "as --by time: what is alive at every kernel");
  app->add_flag("--remedies", options->remedies, "what would take less memory, and the time it costs");
  app->add_flag("--snapshot", options->snapshot,
                "one iteration as a memory snapshot of PyTorch, for pytorch.org/memory_viz");
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
