#include <memory>

#include "graphs/training_step.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/catalog_report.h"
#include "simulate/commands/command.h"
#include "simulate/commands/options.h"
#include "simulate/model_report.h"
#include "simulate/spec_report.h"

namespace tbdsim {
namespace {

struct ShowOptions {
  ModelOptions model;
  OutputOptions output;
};

std::string unknown_name(const std::string& name, const Catalog& catalog) {
  std::vector<std::string> known;
  for (const KindInfo& info : kKinds) {
    const auto names = catalog.names(info.kind);
    known.insert(known.end(), names.begin(), names.end());
  }
  return "the catalogue has no " + in_quotes(name) + did_you_mean(name, known) +
         " ('tbd-sim list' names what it has; a path to a model's YAML file works too)";
}

// What is shown is a model's layers; of everything else its file.
void run(const ShowOptions& options, Library& library, std::ostream& out) {
  const Format format = format_of(options.output);
  const auto write = [&](const Sheet& sheet) {
    write_output(options.output, out,
                 [&](std::ostream& to) { write_sheets(to, std::span(&sheet, 1), format); });
  };
  if (!is_path(options.model.model)) {
    const auto kind = kind_of(library.catalog(), options.model.model);
    if (!kind) throw UsageError(unknown_name(options.model.model, library.catalog()));
    if (*kind != Kind::model) {
      write(spec_sheet(library.catalog(), *kind, options.model.model));
      return;
    }
  }
  const ModelFile& file = library.model(options.model.model);
  const Variant& variant = find_variant(file, options.model.variant, options.model.framework);
  const Precision& precision = find_precision(options.model.precision);
  // Layers do not depend on the framework; their kernels do.
  const Model model = build_model(file, variant, sizes_for(options.model, file));
  const Lowering lowering =
      options.model.framework.empty() ? Lowering{} : library.framework(options.model.framework).lowering;
  write(layer_sheet(model, expand_training_step(model, lowering, precision), precision));
}

}  // namespace

Command add_show(CLI::App& root) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* app = root.add_subcommand(
      "show", "a model's layers, or what a GPU, machine, data set, ... is, with its sources");
  app->add_option("what", options->model.model, "a name of the catalogue, or a model's YAML file")
      ->required();
  add_model_options(*app, options->model);
  add_output_options(*app, options->output);
  return {app,
          [options](Library& library, std::ostream& out, const Progress&) { run(*options, library, out); }};
}

}  // namespace tbdsim
