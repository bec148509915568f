#include <memory>

#include "graphs/training_step.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/catalog_tables.h"
#include "simulate/report/layer_table.h"
#include "simulate/report/spec_table.h"

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
void run(const ShowOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  const auto write = [&](const Table& table) {
    write_output(options.output, out,
                 [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
  };
  if (!is_path(options.model.model)) {
    const auto kind = kind_of(specs.catalog(), options.model.model);
    if (!kind) throw UsageError(unknown_name(options.model.model, specs.catalog()));
    if (*kind != Kind::model) {
      write(spec_table(specs.catalog(), *kind, options.model.model));
      return;
    }
  }
  const ModelFile& file = *specs.model(options.model.model);
  const Variant& variant = find_variant(file, options.model.variant, options.model.framework);
  const Precision& precision = find_precision(options.model.precision);
  // Layers do not depend on the framework; their kernels do.
  const Model model = build_model(file, variant, sizes_for(options.model, file));
  const Lowering lowering =
      options.model.framework.empty() ? Lowering{} : specs.framework(options.model.framework)->lowering;
  write(layer_table(model, expand_training_step(model, lowering, precision), precision));
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
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
