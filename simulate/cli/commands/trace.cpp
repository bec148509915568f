#include <memory>

#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/export/chrome_trace.h"

namespace tbdsim {
namespace {

struct TraceOptions {
  ScenarioOptions scenario;
  OutputOptions output;
};

void run(const TraceOptions& options, SpecCache& specs, std::ostream& out) {
  const Prediction prediction =
      predict(scenario_for(options.scenario, specs, "a trace is of one iteration"), specs);
  write_output(options.output, out, [&](std::ostream& to) { write_trace(to, prediction); });
}

}  // namespace

Command add_trace(CLI::App& root) {
  const auto options = std::make_shared<TraceOptions>();
  CLI::App* app = root.add_subcommand("trace", "one iteration as a trace for Perfetto or chrome://tracing");
  app->add_option("model,--model", options->scenario.model, "a model, or a YAML file");
  add_scenario_options(*app, options->scenario);
  add_input_options(*app, options->scenario.input);
  add_output_file(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
