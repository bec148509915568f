// `tbd-sim completion bash`: a script by which bash completes commands, options and names.
#include <algorithm>
#include <memory>
#include <ostream>

#include <fmt/format.h>

#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/catalog_tables.h"

namespace tbdsim {
namespace {

// An option whose values are names of the catalogue, and the listing that has them.
struct Listed {
  std::string_view option;
  std::string_view kind;
};
constexpr Listed kListed[] = {
    {"--gpu", "gpus"},         {"--against", "gpus"},         {"--on", "gpus"},
    {"--model", "models"},     {"--framework", "frameworks"}, {"--dataset", "datasets"},
    {"--profile", "profiles"}, {"--precision", "precisions"}, {"--optimizer", "optimizers"}};

std::vector<const CLI::App*> commands_of(const CLI::App& root) {
  const std::vector<const CLI::App*> all = root.get_subcommands([](const CLI::App*) { return true; });
  return {all.begin(), all.end()};
}

// "--gpu", "-o": the names of an option as they are typed; none for a positional argument.
std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::string all_flags(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& flag : flags_of(*option)) text += (text.empty() ? "" : " ") + flag;
  }
  return text;
}

std::string all_commands(const CLI::App& root) {
  std::string text;
  for (const CLI::App* command : commands_of(root)) text += (text.empty() ? "" : " ") + command->get_name();
  return text;
}

std::string all_listings() {
  std::string text;
  for (const Listing& listing : listings()) text += (text.empty() ? "" : " ") + std::string(listing.name);
  return text;
}

void write_bash(std::ostream& out, const CLI::App& root) {
  out << "# bash completion of tbd-sim: source it, or put it into "
         "~/.local/share/bash-completion/completions/tbd-sim\n"
         "_tbd_sim() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} kind= words= given\n"
         "  COMPREPLY=()\n"
         "  case $before in\n";
  for (const Listed& listed : kListed) out << fmt::format("    {}) kind={} ;;\n", listed.option, listed.kind);
  out << "    --format) words='table json csv' ;;\n"
         "    list) words='"
      << all_listings()
      << "' ;;\n"
         "    show|kernels|trace) [[ $word == -* ]] || kind=models ;;\n"
         "  esac\n"
         "  [[ -z $kind ]] || words=$(tbd-sim list \"$kind\" --format csv 2>/dev/null | tail -n +2 | cut -d, "
         "-f1)\n"
         "  if [[ -z $words ]]; then\n"
      << fmt::format("    words='{} {}'\n", all_commands(root), all_flags(root))
      << "    for given in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "      case $given in\n";
  for (const CLI::App* command : commands_of(root))
    out << fmt::format("        {}) words='{}' ;;\n", command->get_name(), all_flags(*command));
  out << "      esac\n"
         "    done\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _tbd_sim tbd-sim\n";
}

struct CompletionOptions {
  std::string shell;
  OutputOptions output;
};

}  // namespace

Command add_completion(CLI::App& root) {
  const auto options = std::make_shared<CompletionOptions>();
  CLI::App* app =
      root.add_subcommand("completion", "a script that lets bash complete commands, options and names");
  app->add_option("shell", options->shell, "bash")->required();
  add_output_file(*app, options->output);
  return {app, [options, &root](SpecCache&, std::ostream& out, const Progress&) {
            (void)choice("completion", options->shell, {"bash"});
            write_output(options->output, out, [&](std::ostream& to) { write_bash(to, root); });
          }};
}

}  // namespace tbdsim
