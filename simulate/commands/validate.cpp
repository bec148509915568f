#include <fstream>
#include <memory>

#include "simulate/commands/command.h"
#include "simulate/commands/options.h"
#include "simulate/validation.h"

namespace tbdsim {
namespace {

struct ValidateOptions {
  std::string runs;  // the table of measured runs
  std::string by = "group";
  std::string profile;
  OutputOptions output;
};

void run(const ValidateOptions& options, Library& library, std::ostream& out, const Progress& progress) {
  (void)choice("--by", options.by, {"group", "set", "gpu", "model", "framework"});
  const Format format = format_of(options.output);
  const Profile* profile = options.profile.empty() ? nullptr : &library.profile(options.profile);
  std::ifstream in = open_input(options.runs);
  const Sheet sheet = validation_sheet(
      validate_runs(in, options.runs, options.by, library, options.profile, progress), options.by, profile);
  write_output(options.output, out,
               [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
}

}  // namespace

Command add_validate(CLI::App& root) {
  const auto options = std::make_shared<ValidateOptions>();
  CLI::App* app = root.add_subcommand("validate", "predictions against measured runs: errors by group");
  app->add_option("--runs", options->runs, "CSV of measured runs in the schema of the README")->required();
  app->add_option("--by", options->by, "group, set, gpu, model or framework (default group)");
  add_profile_option(*app, options->profile);
  add_output_options(*app, options->output);
  return {app,
          [options](Library& library, std::ostream& out, const Progress& progress) {
            run(*options, library, out, progress);
          },
          true};
}

}  // namespace tbdsim
