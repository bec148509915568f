// `tbd-sim compare`: a profile beside the prediction of the same run.
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/compare/compare_run.h"
#include "simulate/import/gpu_file.h"
#include "simulate/import/measured_run.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/measured_tables.h"

namespace tbdsim {
namespace {

struct CompareOptions {
  std::string profile;
  ScenarioOptions scenario;
  std::string steps;
  std::string on;
  std::string by = "kind";
  OutputOptions output;
};

// The GPU asked for; the one that the profile names where none is.
std::string gpu_of(const CompareOptions& options, const MeasuredRun& run, const Catalog& catalog) {
  if (!options.scenario.gpu.empty()) return options.scenario.gpu;
  if (const auto known = known_gpu(run.gpu, catalog)) return *known;
  throw UsageError(
      run.gpu.empty()
          ? fmt::format("--gpu is missing and {} names none; expected a name or a YAML file", run.file)
          : fmt::format("--gpu is missing and {} names {}, which is not in the catalogue; expected a name "
                        "or a YAML file",
                        run.file, in_quotes(run.gpu)));
}

void run(const CompareOptions& options, SpecCache& specs, std::ostream& out) {
  constexpr std::int64_t kMostSteps = 1'000'000'000;
  MeasuredRun measured = read_measured_run(options.profile);
  const Format format = format_of(options.output);
  const bool by_name = choice("--by", options.by, {"kind", "kernel"}) == 1;
  if (!options.steps.empty()) {
    measured.steps = static_cast<double>(whole_number("--steps", options.steps, kMostSteps));
    measured.notes.clear();
  }
  ScenarioOptions asked = options.scenario;
  asked.gpu = gpu_of(options, measured, specs.catalog());
  const Scenario scenario = scenario_for(asked, specs, "a profile is compared with one prediction");
  const Prediction here = predict(scenario, specs);
  Comparison comparison = compare_run(here, measured, measured.steps);
  std::vector<ScaledOn> elsewhere;
  if (!options.on.empty()) {
    Scenario there = scenario;
    there.gpu = options.on;
    there.profile.clear();
    const Prediction other = predict(there, specs);
    const ScaledStep scaled = scale_to(comparison, here, other);
    elsewhere.push_back({other.gpu->name, scaled});
  }
  const Table table =
      by_name ? measured_kernel_table(measured) : comparison_table(here, measured, comparison, elsewhere);
  write_output(options.output, out,
               [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
}

}  // namespace

Command add_compare(CLI::App& root) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* app =
      root.add_subcommand("compare", "a profile that was measured beside the prediction of the same run");
  app->add_option("trace", options->profile,
                  "a Chrome trace of the PyTorch profiler (.json, .json.gz), or CSV of nsys, nvprof or ncu")
      ->required();
  app->add_option("--model", options->scenario.model, "a model, a YAML file or a captured step");
  add_scenario_options(*app, options->scenario);
  app->get_option("--gpu")->description("the GPU it was measured on (default: as the profile names it)");
  add_input_options(*app, options->scenario.input);
  app->add_option("--steps", options->steps, "training steps in the profile (default: as it marks them)");
  app->add_option("--on", options->on, "what the measured step would take on this GPU");
  app->add_option("--by", options->by,
                  "kind: of kernels, beside the prediction; kernel: the measured ones by name");
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
