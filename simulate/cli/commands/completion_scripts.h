// Scripts by which shells complete commands, options and names of the catalogue.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tbdsim {

// Choices that may stand for a value: words, names of a listing of `tbd-sim list` (or a file of one's own),
// or, where both are empty, anything.
struct CompletionValue {
  std::vector<std::string> words{};
  std::string listing{};  // "gpus"
};

struct CompletionOption {
  std::vector<std::string> flags;  // "-o", "--output"
  std::string help;
  bool takes_value = false;
  bool repeats = false;
  CompletionValue value{};
};

// A command, or the program without one, whose name is empty.
struct CompletionCommand {
  std::string name;
  std::string help;
  std::vector<CompletionOption> options{};
  bool has_argument = false;
  CompletionValue argument{};
};

// The text of a script for each shell. The first command is that of the program.
[[nodiscard]] std::string bash_completion(std::span<const CompletionCommand> commands);
[[nodiscard]] std::string zsh_completion(std::span<const CompletionCommand> commands);
[[nodiscard]] std::string fish_completion(std::span<const CompletionCommand> commands);

}  // namespace tbdsim
