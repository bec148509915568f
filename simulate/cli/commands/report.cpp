#include <memory>

#include "hwspecs/base/error.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/html/report_page.h"

namespace tbdsim {
namespace {

constexpr const char* kBatch = "32";  // the default

struct ReportOptions {
  ScenarioOptions scenario;
  std::string against;
  std::string target;
  OutputOptions output;
};

// The GPUs to compare with: the option's, else the other GPU of the paper's Figure 7.
std::vector<std::string> other_gpus(const ReportOptions& options) {
  if (!options.against.empty()) return list_of(options.against);
  return {options.scenario.gpu == "p4000" ? "titanxp" : "p4000"};
}

void run(const ReportOptions& options, SpecCache& specs, std::ostream& out) {
  if (options.output.file.empty()) throw UsageError("-o is missing; expected the HTML file to write");
  const PageAssets assets = read_page_assets(specs.catalog().data_dir());
  ScenarioOptions asked = options.scenario;
  if (asked.batch.empty() && asked.tokens.empty()) asked.batch = kBatch;
  std::vector<Scenario> scenarios = scenarios_for(asked, specs);
  for (Scenario& scenario : scenarios) scenario.target = options.target;
  const ReportData data = report_data(scenarios, other_gpus(options), specs, {.sensitivities = true});
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
                  "GPUs to compare with, as p4000,v100_sxm2_16gb (default p4000, for that titanxp)");
  app->add_option(
      "--target", options->target,
      "of one --model, as 'tbd-sim list targets' has them, or usual: time, cost and energy until it is "
      "reached over GPUs and batches");
  add_output_file(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
