#include "simulate/cli/commands/completion_scripts.h"

#include <map>

#include <fmt/format.h>

namespace tbdsim {
namespace {

// Names of a listing, one a line, in each of the shells.
constexpr std::string_view kNames = "--format csv 2>/dev/null | tail -n +2 | cut -d, -f1";

std::string joined_by(std::string_view separator, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : separator).append(word);
  return text;
}

std::vector<std::string> names_of(std::span<const CompletionCommand> commands) {
  std::vector<std::string> names;
  for (const CompletionCommand& command : commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> flags_of(const CompletionCommand& command) {
  std::vector<std::string> flags;
  for (const CompletionOption& option : command.options)
    flags.insert(flags.end(), option.flags.begin(), option.flags.end());
  return flags;
}

// The text with a backslash before each of some characters.
std::string escaped(std::string_view text, std::string_view special) {
  std::string plain;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) plain += '\\';
    plain += c;
  }
  return plain;
}

// The text as one word of bash and zsh.
std::string one_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string bash_value(const CompletionValue& value) {
  if (!value.listing.empty()) return "kind=" + value.listing;
  return value.words.empty() ? "return 0" : "words=" + one_word(joined_by(" ", value.words));
}

// Commands with their options before a value, as one word, by what bash does for the value.
std::map<std::string, std::vector<std::string>> bash_cases(std::span<const CompletionCommand> commands) {
  std::map<std::string, std::vector<std::string>> cases;
  for (const CompletionCommand& command : commands) {
    for (const CompletionOption& option : command.options) {
      if (!option.takes_value) continue;
      for (const std::string& flag : option.flags)
        cases[bash_value(option.value)].push_back(command.name + flag);
    }
  }
  return cases;
}

std::string zsh_value(const CompletionValue& value) {
  if (!value.listing.empty()) return "_tbd_sim_names " + value.listing;
  return value.words.empty() ? "_files" : "(" + joined_by(" ", value.words) + ")";
}

// Options and the argument of a command as _arguments takes them, each on a line of its own.
std::string zsh_arguments(const CompletionCommand& command, std::string_view indent) {
  std::string text;
  for (const CompletionOption& option : command.options) {
    const std::string help = "[" + escaped(option.help, "\\[]:") + "]";
    const std::string value = option.takes_value ? ":value:" + zsh_value(option.value) : "";
    const std::string others = option.repeats ? "*" : "(" + joined_by(" ", option.flags) + ")";
    for (const std::string& flag : option.flags) {
      const std::string_view equals = option.takes_value && flag.starts_with("--") ? "=" : "";
      text += fmt::format(" \\\n{}{}", indent,
                          one_word(fmt::format("{}{}{}{}{}", others, flag, equals, help, value)));
    }
  }
  if (command.has_argument)
    text += fmt::format(" \\\n{}{}", indent, one_word("*:argument:" + zsh_value(command.argument)));
  return text;
}

std::string fish_value(const CompletionValue& value) {
  if (!value.listing.empty()) return fmt::format(" -a '(__tbd_sim_names {})'", value.listing);
  return value.words.empty() ? "" : fmt::format(" -f -a '{}'", joined_by(" ", value.words));
}

}  // namespace

std::string bash_completion(std::span<const CompletionCommand> commands) {
  std::string text =
      "# bash completion of tbd-sim: source it, or put it into "
      "~/.local/share/bash-completion/completions/tbd-sim\n"
      "_tbd_sim() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} kind= words= given "
      "command=\n"
      "  COMPREPLY=()\n"
      "  if [[ $word == = ]]; then word=; fi  # --gpu=x is three words of bash\n"
      "  if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  for given in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $given in\n";
  text += fmt::format("      {}) command=$given; break ;;\n    esac\n  done\n  case $command$before in\n",
                      joined_by("|", names_of(commands.subspan(1))));
  for (const auto& [value, cases] : bash_cases(commands))
    text += fmt::format("    {}) {} ;;\n", joined_by("|", cases), value);
  text += "    *)\n      case \"$command $word\" in\n        *\\ -*) ;;\n";
  for (const CompletionCommand& command : commands.subspan(1)) {
    if (command.has_argument)
      text += fmt::format("        {}\\ *) {} ;;\n", command.name, bash_value(command.argument));
  }
  text += fmt::format(
      "      esac ;;\n"
      "  esac\n"
      "  [[ -z $kind ]] || words=$(tbd-sim list \"$kind\" {})\n"
      "  if [[ -z $words ]]; then\n"
      "    case $command in\n"
      "      '') words='{} {}' ;;\n",
      kNames, joined_by(" ", names_of(commands.subspan(1))), joined_by(" ", flags_of(commands.front())));
  for (const CompletionCommand& command : commands.subspan(1))
    text += fmt::format("      {}) words='{}' ;;\n", command.name, joined_by(" ", flags_of(command)));
  return text +
         "    esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _tbd_sim tbd-sim\n";
}

std::string zsh_completion(std::span<const CompletionCommand> commands) {
  std::string text = fmt::format(
      "#compdef tbd-sim\n"
      "# zsh completion of tbd-sim: source it behind compinit, or put it as _tbd-sim into a folder of fpath\n"
      "_tbd_sim_names() {{\n"
      "  local -a names\n"
      "  names=(${{(f)\"$(tbd-sim list $1 {})\"}})\n"
      "  compadd -a names\n"
      "  _files -g '*.(yaml|yml)'\n"
      "}}\n"
      "_tbd-sim() {{\n"
      "  local curcontext=$curcontext state line ret=1\n"
      "  typeset -A opt_args\n"
      "  _arguments -C -A '-*'",
      kNames);
  text += zsh_arguments(commands.front(), "    ");
  text +=
      " \\\n    '1:command:->command' '*::argument:->argument' && ret=0\n"
      "  case $state in\n"
      "    command)\n"
      "      local -a commands\n"
      "      commands=(\n";
  for (const CompletionCommand& command : commands.subspan(1))
    text += fmt::format("        {}\n", one_word(command.name + ":" + escaped(command.help, "\\:")));
  text +=
      "      )\n"
      "      _describe command commands && ret=0 ;;\n"
      "    argument)\n"
      "      case $words[1] in\n";
  for (const CompletionCommand& command : commands.subspan(1))
    text += fmt::format("        {}) _arguments{} && ret=0 ;;\n", command.name,
                        zsh_arguments(command, "          "));
  return text +
         "      esac ;;\n"
         "  esac\n"
         "  return ret\n"
         "}\n"
         "if [[ $funcstack[1] == _tbd-sim ]]; then _tbd-sim \"$@\"; else compdef _tbd-sim tbd-sim; fi\n";
}

std::string fish_completion(std::span<const CompletionCommand> commands) {
  const std::string all = joined_by(" ", names_of(commands.subspan(1)));
  std::string text = fmt::format(
      "# fish completion of tbd-sim: source it, or put it into ~/.config/fish/completions/tbd-sim.fish\n"
      "function __tbd_sim_names\n"
      "    tbd-sim list $argv[1] {}\n"
      "end\n"
      "function __tbd_sim_bare\n"
      "    not __fish_seen_subcommand_from {}\n"
      "end\n"
      "complete -c tbd-sim -e\n",
      kNames, all);
  for (const CompletionCommand& command : commands) {
    const std::string within =
        command.name.empty() ? "__tbd_sim_bare" : "__fish_seen_subcommand_from " + command.name;
    const std::string begins = fmt::format("complete -c tbd-sim -n '{}'", within);
    if (!command.name.empty())
      text += fmt::format("complete -c tbd-sim -n __tbd_sim_bare -f -a {} -d '{}'\n", command.name,
                          escaped(command.help, "\\'"));
    for (const CompletionOption& option : command.options) {
      text += begins;
      for (const std::string& flag : option.flags)
        text += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
      if (option.takes_value) text += " -r" + fish_value(option.value);
      text += fmt::format(" -d '{}'\n", escaped(option.help, "\\'"));
    }
    if (const std::string value = fish_value(command.argument); command.has_argument && !value.empty())
      text += begins + value + "\n";
  }
  return text;
}

}  // namespace tbdsim
