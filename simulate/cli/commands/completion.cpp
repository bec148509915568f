// What shells and man need to know of the command line, made from its own help: `tbd-sim completion`,
// `tbd-sim man`.
#include <algorithm>
#include <memory>
#include <ostream>

#include <fmt/format.h>

#include "simulate/cli/commands/command.h"
#include "simulate/cli/commands/options.h"
#include "simulate/report/catalog_tables.h"

namespace tbdsim {
namespace {

// Options whose values the catalogue lists, and its kind; "" for arguments that are files.
struct Listed {
  std::string_view option;
  std::string_view kind;
};
constexpr Listed kListed[] = {{"--gpu", "gpus"},
                              {"--against", "gpus"},
                              {"--model", "models"},
                              {"--framework", "frameworks"},
                              {"--dataset", "datasets"},
                              {"--profile", "profiles"},
                              {"--precision", "precisions"}};

std::vector<const CLI::App*> commands_of(const CLI::App& root) {
  const std::vector<const CLI::App*> all = root.get_subcommands([](const CLI::App*) { return true; });
  return {all.begin(), all.end()};
}

// "--gpu", "-o": those that are typed as such.
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

void write_zsh(std::ostream& out, const CLI::App& root) {
  out << "# zsh completion of tbd-sim: source it in ~/.zshrc after compinit\n"
         "autoload -U +X bashcompinit && bashcompinit\n";
  write_bash(out, root);
}

std::string in_single_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("\\'") : std::string(1, c);
  return quoted + "'";
}

void write_fish_option(std::ostream& out, const std::string& condition, const CLI::Option& option) {
  const std::vector<std::string> flags = flags_of(option);
  if (flags.empty()) return;
  std::string line = "complete -c tbd-sim -n " + in_single_quotes(condition);
  for (const std::string& flag : flags)
    line += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  for (const Listed& listed : kListed) {
    if (std::find(flags.begin(), flags.end(), listed.option) == flags.end()) continue;
    line += fmt::format(" -xa '(tbd-sim list {} --format csv | tail -n +2 | cut -d, -f1)'", listed.kind);
  }
  out << line << " -d " << in_single_quotes(option.get_description()) << '\n';
}

void write_fish(std::ostream& out, const CLI::App& root) {
  out << "# fish completion of tbd-sim: put it into ~/.config/fish/completions/tbd-sim.fish\n";
  for (const CLI::App* command : commands_of(root)) {
    out << fmt::format("complete -c tbd-sim -f -n __fish_use_subcommand -a {} -d {}\n", command->get_name(),
                       in_single_quotes(command->get_description()));
    for (const CLI::Option* option : command->get_options())
      write_fish_option(out, "__fish_seen_subcommand_from " + command->get_name(), *option);
  }
  for (const CLI::Option* option : root.get_options())
    write_fish_option(out, "__fish_use_subcommand", *option);
}

// As roff has it: no line begins with a control character, hyphens can be copied.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if ((escaped.empty() || escaped.back() == '\n') && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void write_man_options(std::ostream& out, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    std::string name;
    for (const std::string& flag : flags_of(*option)) name += (name.empty() ? "" : ", ") + flag;
    if (name.empty()) name = option->get_name(true);
    out << ".TP\n.B " << roff(name) << '\n' << roff(option->get_description()) << '\n';
  }
}

void write_man(std::ostream& out, const CLI::App& root) {
  out << ".TH TBD\\-SIM 1\n.SH NAME\ntbd\\-sim \\- predicts the training of neural networks on GPUs\n"
         ".SH SYNOPSIS\n.B tbd\\-sim\n[\\fIcommand\\fR] [\\fIoptions\\fR]\n.SH DESCRIPTION\n"
      << roff(root.get_description()) << "\n.SH OPTIONS\n";
  write_man_options(out, root);
  out << ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(root)) {
    out << ".SS " << roff(command->get_name()) << '\n' << roff(command->get_description()) << '\n';
    write_man_options(out, *command);
    out << ".PP\n.nf\n" << roff(command->get_footer()) << ".fi\n";
  }
  out << ".SH EXIT STATUS\n0: ok, also where a batch does not fit; 2: a wrong command line or file; 1: a bug "
         "in "
         "tbd\\-sim; 130: interrupted.\n.SH EXAMPLES\n.nf\n"
      << roff(root.get_footer()) << "\n.fi\n";
}

struct ShellOptions {
  std::string shell;
  OutputOptions output;
};

}  // namespace

Command add_completion(CLI::App& root) {
  const auto options = std::make_shared<ShellOptions>();
  CLI::App* app =
      root.add_subcommand("completion", "a script that lets a shell complete commands, options and names");
  app->add_option("shell", options->shell, "bash, zsh or fish")->required();
  add_output_file(*app, options->output);
  return {
      app, [options, &root](SpecCache&, std::ostream& out, const Progress&) {
        constexpr void (*kWriters[])(std::ostream&, const CLI::App&) = {write_bash, write_zsh, write_fish};
        const auto write = kWriters[choice("completion", options->shell, {"bash", "zsh", "fish"})];
        write_output(options->output, out, [&](std::ostream& to) { write(to, root); });
      }};
}

Command add_man(CLI::App& root) {
  const auto options = std::make_shared<ShellOptions>();
  CLI::App* app = root.add_subcommand("man", "the manual page: tbd-sim man | man -l -");
  add_output_file(*app, options->output);
  return {app, [options, &root](SpecCache&, std::ostream& out, const Progress&) {
            write_output(options->output, out, [&](std::ostream& to) { write_man(to, root); });
          }};
}

}  // namespace tbdsim
