#include <algorithm>
#include <memory>
#include <span>

#include "hwspecs/base/error.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/html/report_page.h"
#include "simulate/workload/precision_choice.h"

namespace tbdsim {
namespace {

constexpr const char* kBatch = "32";  // the default

struct ReportOptions {
  ScenarioOptions scenario;
  std::string against;
  std::string target;
  OutputOptions output;
};

// True if the GPU has arithmetic for the scenario's precision.
bool computes(const GpuSpec& gpu, const Scenario& scenario, SpecCache& specs) {
  const Precision& precision = precision_for(*specs.model(scenario.model), scenario.precision);
  const auto has = [&](MathType math) { return gpu.math[index_of(math)] || gpu.computes_in[index_of(math)]; };
  return has(precision.math) && has(precision.weight_product_math());
}

// The GPUs to compare with: the option's, else the other GPU of the paper's Figure 7, or the first later one
// that computes in the precision of all scenarios.
std::vector<std::string> other_gpus(const ReportOptions& options, std::span<const Scenario> scenarios,
                                    SpecCache& specs) {
  if (!options.against.empty()) return list_of(options.against);
  for (const char* name : {"p4000", "titanxp", "a100_sxm_80gb", "h100_sxm", "b200"}) {
    const auto can = [&](const Scenario& s) { return computes(*specs.gpu(name), s, specs); };
    if (name != options.scenario.gpu && std::all_of(scenarios.begin(), scenarios.end(), can)) return {name};
  }
  return {};
}

void run(const ReportOptions& options, SpecCache& specs, std::ostream& out) {
  if (options.output.file.empty()) throw UsageError("-o is missing; expected the HTML file to write");
  const PageAssets assets = read_page_assets(specs.catalog().data_dir());
  ScenarioOptions asked = options.scenario;
  if (asked.batch.empty() && asked.tokens.empty()) asked.batch = kBatch;
  std::vector<Scenario> scenarios = scenarios_for(asked, specs);
  for (Scenario& scenario : scenarios) scenario.target = options.target;
  const ReportData data =
      report_data(scenarios, other_gpus(options, scenarios, specs), specs, {.sensitivities = true});
  const Page page = report_page(data, specs.catalog());
  write_output(options.output, out, [&](std::ostream& to) { write_page(to, page, assets); });
}

}  // namespace

Command add_report(CLI::App& root) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* app = root.add_subcommand("report", "the paper's figures for any hardware, as one HTML file");
  app->add_option("--model", options->scenario.model,
                  "a model, a YAML file, or all (default: the eight of the TBD suite)");
  add_suite_option(*app, options->scenario);
  add_scenario_options(*app, options->scenario);
  add_input_options(*app, options->scenario.input);
  app->get_option("--batch")->description(
      "samples in one iteration on one GPU (default 32; less where that does not fit)");
  app->add_option("--against", options->against,
                  "GPUs to compare with, as p4000,v100_sxm2_16gb (default p4000, for that titanxp; where "
                  "these lack the precision an A100 or later)");
  app->add_option(
      "--target", options->target,
      "of one --model, as 'tbd-sim list targets' has them, or usual: time, cost and energy until it is "
      "reached over GPUs and batches");
  add_output_file(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
