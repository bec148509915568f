#include <memory>

#include "graphs/training_step.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/catalog_tables.h"
#include "simulate/report/layer_table.h"
#include "simulate/report/profile_table.h"
#include "simulate/report/spec_table.h"
#include "simulate/workload/captured_model.h"
#include "simulate/workload/precision_choice.h"

namespace tbdsim {
namespace {

struct ShowOptions {
  ModelOptions model;  // its `model` is what to show, or a kind where `name` is given
  std::string name;
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

Table layers_of(const ModelOptions& options, SpecCache& specs) {
  const ModelFile& file = *specs.model(options.model);
  const Variant& variant = find_variant(file, options.variant, options.framework);
  const Precision& precision = precision_for(file, options.precision);
  // Layers do not depend on the framework; their kernels do.
  const Sizes sizes = sizes_for(options, file);
  const Lowering lowering =
      options.framework.empty() ? Lowering{} : specs.framework(options.framework)->lowering;
  const TrainingStep step =
      file.captured ? expand_captured(file, sizes, lowering, precision)
                    : expand_training_step(build_model(file, variant, sizes), lowering, precision);
  return layer_table(file, variant, step, precision);
}

// A kind as `show profile titanxp` names it.
Kind kind_named(const std::string& name) {
  std::vector<std::string> names;
  for (const KindInfo& info : kKinds) names.emplace_back(info.plural.substr(0, info.plural.size() - 1));
  return kKinds[choice("show", name, names)].kind;
}

Table file_table(Kind kind, const std::string& name, SpecCache& specs) {
  return kind == Kind::gpu ? gpu_table(specs.catalog(), *specs.gpu(name))
                           : spec_table(specs.catalog(), kind, name);
}

// A model's layers, a profile's blocks where its kind is named, the file of everything else.
Table shown(const ShowOptions& options, SpecCache& specs) {
  const Catalog& catalog = specs.catalog();
  const std::string& what = options.model.model;
  if (!options.name.empty()) {
    const Kind kind = kind_named(what);
    if (kind == Kind::profile) return profile_table(*specs.profile(options.name));
    if (kind != Kind::model) return file_table(kind, options.name, specs);
    ModelOptions model = options.model;
    model.model = options.name;
    return layers_of(model, specs);
  }
  if (!is_path(what)) {
    const auto kind = kind_of(catalog, what);
    if (!kind) throw UsageError(unknown_name(what, catalog));
    if (*kind != Kind::model) return file_table(*kind, what, specs);
  }
  return layers_of(options.model, specs);
}

void run(const ShowOptions& options, SpecCache& specs, std::ostream& out) {
  const Format format = format_of(options.output);
  const Table table = shown(options, specs);
  write_output(options.output, out,
               [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
}

}  // namespace

Command add_show(CLI::App& root) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* app = root.add_subcommand(
      "show", "a model's layers, or what a GPU, machine, data set, ... is, with its sources");
  app->add_option("what", options->model.model, "a name of the catalogue, or a model's YAML file")
      ->required();
  app->add_option(
      "name", options->name,
      "a name of the kind that stands before it, or a file: 'show profile titanxp', 'show gpu my_gpu.yaml'");
  add_model_options(*app, options->model);
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
