#include <memory>
#include <set>

#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/prediction/predict_all.h"
#include "simulate/report/export/benchmark_plan.h"
#include "simulate/report/kernel_group_tables.h"
#include "simulate/report/kernel_table.h"
#include "simulate/report/prediction_table.h"

namespace tbdsim {
namespace {

// The GPU on which the times that order a measuring plan are predicted without --gpu; the order on others is
// similar.
constexpr const char* kPlanOrderGpu = "a100_sxm_80gb";

struct KernelsOptions {
  ScenarioOptions scenario;   // batch and precision may be lists
  std::string from;           // only those whose time comes from there, "modelled,roofline"
  std::string view;           // summed by kernel, layer, phase or type
  std::string below_average;  // so many of those with the least use of the peak
  bool unique = false;        // each distinct kernel once
  bool plan = false;          // as a measuring plan
  OutputOptions output;
  bool terminal = false;  // standard output is one
};

// "modelled,roofline" -> those two; none given: all.
std::set<Provenance> provenances_of(const KernelsOptions& options) {
  if (options.from.empty()) return {};
  if (options.unique || options.plan || !options.view.empty() || !options.below_average.empty()) {
    throw UsageError(
        "--from lists kernels one by one; expected no --unique, --plan, --by or --below-average beside it");
  }
  std::set<Provenance> from;
  for (const std::string& name : list_of(options.from)) {
    from.insert(
        static_cast<Provenance>(choice("--from", name, {kProvenanceNames.begin(), kProvenanceNames.end()})));
  }
  return from;
}

bool sums_kernels(const KernelsOptions& options) {
  if (options.view.empty() && options.below_average.empty()) return false;
  if (options.unique || options.plan) {
    throw UsageError(
        "--by and --below-average sum the kernels of one iteration; expected no --unique or --plan beside "
        "them");
  }
  return true;
}

// Kernels summed by --by (default: by name).
Table summed_kernels(const KernelsOptions& options, const Prediction& p) {
  const std::string by = options.view.empty() ? std::string(kKernelViewNames[0]) : options.view;
  const auto view =
      static_cast<KernelView>(choice("--by", by, {kKernelViewNames.begin(), kKernelViewNames.end()}));
  if (options.below_average.empty()) return kernel_group_table(p, view, kernel_groups(p, view));
  constexpr std::int64_t kMostGroups = 1'000'000;
  const std::int64_t most = whole_number("--below-average", options.below_average, kMostGroups);
  return kernel_group_table(p, view, below_average(p, view, static_cast<std::size_t>(most)));
}

void run(const KernelsOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  if (options.plan && !options.output.format.empty())
    throw UsageError("--plan writes CSV; expected no --format beside it");
  const std::set<Provenance> from = provenances_of(options);
  const bool summed = sums_kernels(options);
  std::vector<Prediction> predictions;
  for (const std::string& precision : list_of(options.scenario.precision)) {
    for (const std::string& batch : list_of(options.scenario.batch)) {
      ScenarioOptions one = options.scenario;
      one.precision = precision;
      one.batch = batch;
      if (options.plan && one.gpu.empty()) one.gpu = kPlanOrderGpu;
      for (Prediction& prediction : predict_all(scenarios_for(one, specs), specs))
        predictions.push_back(std::move(prediction));
    }
  }
  write_output(options.output, out, [&](std::ostream& to) {
    if (options.plan) {
      write_measuring_plan(to, unique_kernels(predictions));
    } else if (options.unique) {
      const Table table = unique_kernel_table(unique_kernels(predictions));
      write_tables(to, std::span(&table, 1), format);
    } else {
      const bool on_screen = options.terminal && options.output.file.empty();
      std::vector<Table> tables;
      for (const Prediction& prediction : predictions) {
        tables.push_back(summed ? summed_kernels(options, prediction) : kernel_table(prediction, from));
        if (on_screen) shorten_layers(tables.back());
      }
      write_tables(to, tables, format);
    }
  });
}

}  // namespace

Command add_kernels(CLI::App& root) {
  const auto options = std::make_shared<KernelsOptions>();
  CLI::App* app = root.add_subcommand(
      "kernels", "every kernel of an iteration: cost, bound, where the number comes from");
  app->add_option("model,--model", options->scenario.model, "a model, a YAML file, or all (default)");
  add_scenario_options(*app, options->scenario);
  add_output_options(*app, options->output);
  app->get_option("--batch")->description("samples in one iteration on one GPU; several as 4,16,64");
  app->get_option("--precision")->description("as above; several as fp32,tf32");
  const std::vector<std::string> provenances(kProvenanceNames.begin(), kProvenanceNames.end());
  app->add_option("--from", options->from,
                  "only kernels whose time comes from there, as modelled,roofline: " + joined(provenances));
  const std::vector<std::string> views(kKernelViewNames.begin(), kKernelViewNames.end());
  app->add_option("--by", options->view, "summed by " + joined(views));
  app->add_option("--below-average", options->below_average,
                  "the longest kernels whose FP32 utilization is below the iteration's, so many (default 5)")
      ->expected(0, 1)
      ->default_str("5");
  app->add_flag("--unique", options->unique, "each distinct kernel once, the most time first");
  app->add_flag("--plan", options->plan,
                "the distinct kernels as CSV for 'tbd-measure --plan'; --gpu may be left out");
  return {app, [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); },
          false, &options->terminal};
}

}  // namespace tbdsim
