#include <memory>

#include "hwspecs/base/error.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/predict_all.h"
#include "simulate/report/explanation.h"
#include "simulate/report/prediction_table.h"

namespace tbdsim {
namespace {

struct PredictOptions {
  ScenarioOptions scenario;
  OutputOptions output;
  bool explain = false;
};

void explain(const PredictOptions& options, SpecCache& specs, std::ostream& out) {
  if (!options.output.format.empty())
    throw UsageError("--explain writes words; expected no --format beside it");
  const Prediction prediction =
      predict(scenario_for(options.scenario, specs, "--explain is of one iteration"), specs);
  write_output(options.output, out, [&](std::ostream& to) {
    for (const std::string& line : explanation(prediction)) to << line << '\n';
  });
}

void run(const PredictOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  const std::vector<Prediction> predictions = predict_all(scenarios_for(options.scenario, specs), specs);
  write_output(options.output, out, [&](std::ostream& to) { write_predictions(to, predictions, format); });
}

}  // namespace

Command add_predict_scenario(CLI::App& root) {
  const auto options = std::make_shared<PredictOptions>();
  root.add_option("--model", options->scenario.model,
                  "a model of 'tbd-sim list models', or a YAML file (default: the eight of the TBD suite; "
                  "all: the whole catalogue)");
  add_suite_option(root, options->scenario);
  add_scenario_options(root, options->scenario);
  add_input_options(root, options->scenario.input);
  add_output_options(root, options->output);
  root.add_flag("--explain", options->explain, "how one prediction came about, step by step");
  return {&root, [options](SpecCache& specs, std::ostream& out, const Progress&) {
            options->explain ? explain(*options, specs, out) : run(*options, specs, out);
          }};
}

}  // namespace tbdsim
