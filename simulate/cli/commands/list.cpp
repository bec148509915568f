#include <memory>

#include "hwspecs/base/suggest.h"
#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/catalog_tables.h"

namespace tbdsim {
namespace {

struct ListOptions {
  std::string what;  // gpus, models, ...
  OutputOptions output;
};

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const Listing& listing : listings()) names.emplace_back(listing.name);
  return names;
}

void run(const ListOptions& options, SpecCache& specs, std::ostream& out) {
  Table table = listings()[choice("list", options.what, kinds())].table(specs.catalog());
  table.name = options.what;
  const Format format = format_of(options.output);
  write_output(options.output, out,
               [&](std::ostream& to) { write_tables(to, std::span(&table, 1), format); });
}

}  // namespace

Command add_list(CLI::App& root) {
  const auto options = std::make_shared<ListOptions>();
  CLI::App* app = root.add_subcommand("list", "what the catalogue holds: " + joined(kinds()));
  app->add_option("what", options->what, joined(kinds()));
  add_output_options(*app, options->output);
  return {app,
          [options](SpecCache& specs, std::ostream& out, const Progress&) { run(*options, specs, out); }};
}

}  // namespace tbdsim
