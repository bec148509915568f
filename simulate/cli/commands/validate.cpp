#include <memory>

#include "hwspecs/base/error.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/html/validation_page.h"
#include "simulate/report/tta_validation_table.h"
#include "simulate/report/validation_tables.h"
#include "simulate/validation/published_runs.h"

namespace tbdsim {
namespace {

struct ValidateOptions {
  std::string runs;    // a table of measured runs; empty: the project's own
  std::string tta;     // a table of submissions instead
  std::string by;      // empty: group
  std::string unseen;  // a GPU, or all
  std::string worst;   // how many
  std::string profile;
  std::string html;  // a page instead
  OutputOptions output;
};

// The GPU of --unseen; "" for all. Throws for one that is not in the catalogue.
std::string unseen_gpu(const ValidateOptions& options, SpecCache& specs) {
  if (!options.profile.empty() || !options.worst.empty())
    throw UsageError("--unseen compares the profiles there are; expected no --profile or --worst beside it");
  return options.unseen == "all" ? "" : specs.gpu(options.unseen)->name;
}

const Profile* profile_of(const ValidateOptions& options, SpecCache& specs) {
  return options.profile.empty() ? nullptr : specs.profile(options.profile).get();
}

std::vector<std::filesystem::path> files_of(const ValidateOptions& options, const SpecCache& specs) {
  if (options.runs.empty()) return validation_set(specs.catalog());
  return {options.runs};
}

Validation validation_of(const ValidateOptions& options, const std::string& by, SpecCache& specs,
                         const Progress& progress) {
  const RowPredictor predictor = [&](const RunColumns& columns, std::span<const std::string> row) {
    return predict_row(columns, row, specs, options.profile);
  };
  return validate_runs(files_of(options, specs), by, known_faults(specs.catalog()), predictor, progress);
}

Table validated(const ValidateOptions& options, const std::string& by, SpecCache& specs,
                const Progress& progress) {
  const Profile* profile = profile_of(options, specs);
  constexpr std::int64_t kMost = 1'000'000;
  const std::int64_t worst =  // rows to show; 0: errors by group
      options.worst.empty() ? 0 : whole_number("--worst", options.worst, kMost);
  if (!options.unseen.empty()) {
    return holdout_table(
        holdout_errors(files_of(options, specs), unseen_gpu(options, specs), by, specs, progress), by);
  }
  const Validation validation = validation_of(options, by, specs, progress);
  if (worst == 0) return validation_table(validation, by, profile);
  return worst_table(validation, static_cast<std::size_t>(worst));
}

void write_html(const ValidateOptions& options, const std::string& by, SpecCache& specs,
                const Progress& progress) {
  if (!options.unseen.empty() || !options.worst.empty() || !options.output.file.empty() ||
      !options.output.format.empty())
    throw UsageError("--html writes a page; expected no --unseen, --worst, --format or -o beside it");
  const PageAssets assets = read_page_assets(specs.catalog().data_dir());
  const Profile* profile = profile_of(options, specs);
  const Validation validation = validation_of(options, by, specs, progress);
  const std::vector<FarthestRun> farthest =
      farthest_runs(validation, profile == nullptr ? "" : profile->name, specs);
  const Page page = validation_page(validation, by, profile, farthest);
  AtomicFile file(options.html);
  write_page(file.stream(), page, assets);
  file.commit();
}

Table tta_validated(const ValidateOptions& options, SpecCache& specs) {
  if (!options.runs.empty() || !options.by.empty() || !options.unseen.empty() || !options.worst.empty() ||
      !options.profile.empty() || !options.html.empty())
    throw UsageError(
        "--tta has a table of its own; expected no --runs, --by, --unseen, --worst, --profile or --html");
  std::ifstream in = open_input(options.tta);
  const SuiteRules rules =
      read_suite_rules(specs.catalog().data_dir() / "simulate/validation/benchmarks/mlperf_training.yaml");
  const std::vector<Submission> submissions = read_submissions(in, options.tta, rules);
  return tta_validation_table(validate_submissions(submissions, rules, specs), rules);
}

void run(const ValidateOptions& options, SpecCache& specs, std::ostream& out, const Progress& progress) {
  if (!options.tta.empty()) {
    const Format format = format_of(options.output);
    const Table table = tta_validated(options, specs);
    write_output(options.output, out,
                 [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
    return;
  }
  const std::string by = options.by.empty() ? (options.unseen == "all" ? "gpu" : "group") : options.by;
  (void)choice("--by", by, {"group", "set", "gpu", "model", "framework"});
  if (!options.html.empty()) {
    write_html(options, by, specs, progress);
    return;
  }
  const Format format = format_of(options.output);
  const Table table = validated(options, by, specs, progress);
  write_output(options.output, out,
               [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
}

}  // namespace

Command add_validate(CLI::App& root) {
  const auto options = std::make_shared<ValidateOptions>();
  CLI::App* app = root.add_subcommand("validate", "predictions against measured runs: errors by group");
  app->add_option("--runs", options->runs,
                  "CSV of measured runs, as docs/formats.md describes (default: the project's own)");
  app->add_option(
      "--tta", options->tta,
      "CSV of runs to a target quality, as docs/formats.md describes: throughput, time to the target, the "
      "order of systems");
  app->add_option("--by", options->by, "group, set, gpu, model or framework (default group)");
  app->add_option("--unseen", options->unseen,
                  "a GPU, or all: also as if nothing had been measured on it but what its data sheet says");
  app->add_option("--worst", options->worst,
                  "so many configurations of score with the largest errors (default 10)")
      ->expected(0, 1)
      ->default_str("10");
  add_profile_option(*app, options->profile);
  app->add_option("--html", options->html, "write a page with charts and every configuration to this file");
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress& progress) {
            run(*options, specs, out, progress);
          },
          true};
}

}  // namespace tbdsim
