#include <algorithm>
#include <filesystem>
#include <memory>

#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/observations_table.h"
#include "simulate/validation/observations_reader.h"

namespace tbdsim {
namespace {

struct ObservationsOptions {
  std::string suite = "tbd";
  std::string file;  // instead of the suite's
  OutputOptions output;
};

// The file of a suite's observations. Throws UsageError with "did you mean".
std::filesystem::path file_of_suite(const std::string& suite, const Catalog& catalog) {
  const std::filesystem::path folder = catalog.data_dir() / "simulate/validation/observations";
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return folder / (names[choice("--suite", suite, names)] + ".yaml");
}

void run(const ObservationsOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  const Observations observations =
      read_observations(options.file.empty() ? file_of_suite(options.suite, specs.catalog())
                                             : std::filesystem::path(options.file));
  const std::vector<Table> tables = observation_tables(observations, observe(observations, specs));
  write_output(options.output, out, [&](std::ostream& to) { write_tables(to, tables, format); });
}

}  // namespace

Command add_observations(CLI::App& root) {
  const auto options = std::make_shared<ObservationsOptions>();
  CLI::App* app = root.add_subcommand(
      "observations",
      "the observations of a benchmark's paper: what holds of what is predicted, with the evidence");
  app->add_option("--suite", options->suite,
                  "tbd, the twelve of the TBD paper, or dawnbench, those on time to accuracy (default tbd)");
  app->add_option("--file", options->file,
                  "other observations, as simulate/validation/observations/tbd.yaml");
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
