#include <memory>

#include "simulate/commands/command.h"
#include "simulate/commands/options.h"
#include "simulate/predict_all.h"
#include "simulate/prediction_report.h"

namespace tbdsim {
namespace {

struct PredictOptions {
  ScenarioOptions scenario;
  OutputOptions output;
};

void run(const PredictOptions& options, Library& library, std::ostream& out) {
  const Format format = format_of(options.output);
  const std::vector<Prediction> predictions = predict_all(scenarios_for(options.scenario, library), library);
  write_output(options.output, out, [&](std::ostream& to) { write_predictions(to, predictions, format); });
}

}  // namespace

Command add_predict(CLI::App& root) {
  const auto options = std::make_shared<PredictOptions>();
  root.add_option("--model", options->scenario.model,
                  "a model of 'tbd-sim list models', or a YAML file (default: the eight of the TBD suite; "
                  "all: the whole catalogue)");
  add_scenario_options(root, options->scenario);
  add_output_options(root, options->output);
  return {&root,
          [options](Library& library, std::ostream& out, const Progress&) { run(*options, library, out); }};
}

}  // namespace tbdsim
