#include "simulate/observations.h"

#include <memory>

#include "simulate/commands/command.h"
#include "simulate/commands/options.h"

namespace tbdsim {
namespace {

struct ObservationsOptions {
  std::string file;  // empty: the paper's
  OutputOptions output;
};

void run(const ObservationsOptions& options, Library& library, std::ostream& out) {
  const Format format = format_of(options.output);
  const Observations observations =
      read_observations(options.file.empty() ? library.catalog().data_dir() / "simulate/observations/tbd.yaml"
                                             : std::filesystem::path(options.file));
  const std::vector<Sheet> sheets = observation_sheets(observations, observe(observations, library));
  write_output(options.output, out, [&](std::ostream& to) { write_sheets(to, sheets, format); });
}

}  // namespace

Command add_observations(CLI::App& root) {
  const auto options = std::make_shared<ObservationsOptions>();
  CLI::App* app = root.add_subcommand(
      "observations", "the paper's twelve observations: what holds of what is predicted, with the evidence");
  app->add_option("--file", options->file, "other observations, as simulate/observations/tbd.yaml");
  add_output_options(*app, options->output);
  return {app,
          [options](Library& library, std::ostream& out, const Progress&) { run(*options, library, out); }};
}

}  // namespace tbdsim
