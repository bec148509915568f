// `tbd-sim completion bash`: a script by which a shell completes commands, options and names.
#include <algorithm>
#include <iterator>
#include <memory>
#include <ostream>

#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/completion_scripts.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/catalog_tables.h"

namespace tbdsim {
namespace {

const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

// An option or an argument whose values are names of the catalogue, and the listing that has them.
struct Listed {
  std::string_view name;
  std::string_view listing;
};
constexpr Listed kListed[] = {
    {"gpu", "gpus"},         {"against", "gpus"},         {"on", "gpus"},
    {"model", "models"},     {"models", "models"},        {"what", "models"},
    {"suite", "suites"},     {"framework", "frameworks"}, {"dataset", "datasets"},
    {"profile", "profiles"}, {"precision", "precisions"}, {"optimizer", "optimizers"},
    {"machine", "machines"}, {"network", "links"},        {"target", "targets"},
    {"metrics", "metrics"}};

CompletionValue value_of(const std::string& command, const std::string& name) {
  if (name == "shell") return {.words = kShells};
  if (name == "format") return {.words = {"table", "json", "csv"}};
  if (command == "list" && name == "what") {
    CompletionValue value;
    for (const Listing& listing : listings()) value.words.emplace_back(listing.name);
    return value;
  }
  const auto* const listed = std::ranges::find(kListed, name, &Listed::name);
  return listed == std::end(kListed) ? CompletionValue{}
                                     : CompletionValue{.listing = std::string(listed->listing)};
}

// Options have flags, an argument has none.
CompletionCommand command_of(const CLI::App& app, const std::string& name) {
  CompletionCommand command{.name = name, .help = app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.has_argument = true;
      command.argument = value_of(name, option->get_single_name());
      continue;
    }
    CompletionOption known{.flags = {}, .help = option->get_description()};
    for (const std::string& flag : option->get_snames()) known.flags.push_back("-" + flag);
    for (const std::string& flag : option->get_lnames()) known.flags.push_back("--" + flag);
    known.takes_value = option->get_items_expected_max() > 0;
    known.repeats = option->get_expected_max() > 1;
    known.value = value_of(name, option->get_single_name());
    command.options.push_back(std::move(known));
  }
  return command;
}

std::vector<CompletionCommand> commands_of(const CLI::App& root) {
  std::vector<CompletionCommand> commands = {command_of(root, "")};
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command_of(*app, app->get_name()));
  return commands;
}

struct CompletionOptions {
  std::string shell;
  OutputOptions output;
};

}  // namespace

Command add_completion(CLI::App& root) {
  const auto options = std::make_shared<CompletionOptions>();
  CLI::App* app = root.add_subcommand(
      "completion", "a script that lets bash, zsh or fish complete commands, options and names");
  app->add_option("shell", options->shell, "bash, zsh or fish")->required();
  add_output_file(*app, options->output);
  return {app, [options, &root](SpecCache&, std::ostream& out, const Progress&) {
            constexpr std::string (*kScripts[])(std::span<const CompletionCommand>) = {
                bash_completion, zsh_completion, fish_completion};
            const std::size_t shell = choice("completion", options->shell, kShells);
            write_output(options->output, out,
                         [&](std::ostream& to) { to << kScripts[shell](commands_of(root)); });
          }};
}

}  // namespace tbdsim
