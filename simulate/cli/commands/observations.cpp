#include <memory>

#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/observations_table.h"
#include "simulate/validation/observations_reader.h"

namespace tbdsim {
namespace {

struct ObservationsOptions {
  std::string file;  // empty: the paper's
  OutputOptions output;
};

void run(const ObservationsOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  const Observations observations = read_observations(
      options.file.empty() ? specs.catalog().data_dir() / "simulate/validation/observations/tbd.yaml"
                           : std::filesystem::path(options.file));
  const std::vector<Table> tables = observation_tables(observations, observe(observations, specs));
  write_output(options.output, out, [&](std::ostream& to) { write_tables(to, tables, format); });
}

}  // namespace

Command add_observations(CLI::App& root) {
  const auto options = std::make_shared<ObservationsOptions>();
  CLI::App* app = root.add_subcommand(
      "observations", "the paper's twelve observations: what holds of what is predicted, with the evidence");
  app->add_option("--file", options->file,
                  "other observations, as simulate/validation/observations/tbd.yaml");
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
