// Every command that the README or a command's help shows of tbd-sim works as written, in a folder that holds
// what they call the reader's own: my_gpu.yaml, my_model.yaml and runs.csv.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "hwspecs/base/file.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

namespace fs = std::filesystem;

std::string readme() { return read_file(fs::path(TBDSIM_SOURCE_DIR) / "README.md", 1'000'000); }

// The contents of blocks fenced with ``` and this word, in order.
std::vector<std::string> blocks(const std::string& word) {
  std::vector<std::string> found;
  std::istringstream lines(readme());
  bool inside = false, wanted = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line.substr(3) == word;
      if (wanted) found.emplace_back();
    } else if (wanted) {
      found.back() += line + '\n';
    }
  }
  return found;
}

// Lines of blocks that begin with the program's name; a backslash goes on in the next line.
std::vector<std::string> commands() {
  std::vector<std::string> found;
  for (const std::string& block : blocks("")) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      while (line.ends_with('\\')) {
        std::string more;
        std::getline(lines, more);
        line = line.substr(0, line.size() - 1) + more;
      }
      if (line.starts_with("tbd-sim ")) found.push_back(line);
    }
  }
  return found;
}

// Names of the commands that the program's help lists.
std::vector<std::string> command_names() {
  std::vector<std::string> names;
  std::istringstream lines(test::run({"--help"}).out);
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Subcommands:") listed = true;
    if (line.empty()) listed = false;
    if (listed && line.starts_with("  ") && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

// The lines of a command's help below "Examples:".
std::vector<std::string> examples_of(const std::string& command) {
  std::vector<std::string> found;
  const std::string help = test::run({command, "--help"}).out;
  const std::size_t at = help.find("\nExamples:\n");
  std::istringstream lines(at == std::string::npos ? "" : help.substr(at));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  tbd-sim ")) found.push_back(line.substr(2));
  }
  return found;
}

std::vector<std::string> all_examples() {
  std::vector<std::string> all;
  for (const std::string& command : command_names()) {
    for (const std::string& example : examples_of(command)) all.push_back(example);
  }
  return all;
}

// As a shell has them: quotes hold words together, what follows '#' is a comment.
std::vector<std::string> arguments_of(const std::string& command) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (const char c : command) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        words.back() += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ' ') {
      if (!words.back().empty()) words.emplace_back();
    } else if (c == '#' && words.back().empty()) {
      break;
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  words.erase(words.begin());
  return words;
}

class ReadmeCommand : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto yaml = blocks("yaml");
    directory_.write("my_gpu.yaml", yaml.at(0));
    directory_.write("my_model.yaml", yaml.at(1));
    fs::copy_file(TBDSIM_SOURCE_DIR "/simulate/validation/runs/tbd_paper.csv",
                  directory_.path() / "runs.csv");
    before_ = fs::current_path();
    fs::current_path(directory_.path());
  }
  void TearDown() override { fs::current_path(before_); }

 private:
  test::TempDir directory_;
  fs::path before_;
};

TEST_P(ReadmeCommand, WorksAsWritten) {
  std::vector<std::string> arguments = arguments_of(GetParam());
  const bool page = arguments.at(0) == "report" || arguments.at(0) == "serve";
  if (page && !fs::exists(TBDSIM_SOURCE_DIR "/simulate/report/html/assets/plotly.min.js.gz"))
    GTEST_SKIP() << "Plotly is not installed";
  const bool serves = arguments[0] == "serve";
  if (serves && std::find(arguments.begin(), arguments.end(), "--port") == arguments.end())
    arguments.insert(arguments.end(), {"--port", "0"});  // the usual one may be taken here
  const test::CliResult result = test::run(arguments, serves);
  EXPECT_EQ(result.exit_code, serves ? 130 : 0) << GetParam() << '\n' << result.err;
}

INSTANTIATE_TEST_SUITE_P(Readme, ReadmeCommand, testing::ValuesIn(commands()),
                         [](const auto& command) { return "number_" + std::to_string(command.index); });

INSTANTIATE_TEST_SUITE_P(Help, ReadmeCommand, testing::ValuesIn(all_examples()),
                         [](const auto& command) { return "number_" + std::to_string(command.index); });

TEST(HelpExamples, EveryCommandEndsWithTwoOrThree) {
  ASSERT_GE(command_names().size(), 16u);
  for (const std::string& command : command_names()) {
    const std::vector<std::string> examples = examples_of(command);
    EXPECT_GE(examples.size(), 2u) << command;
    EXPECT_LE(examples.size(), 3u) << command;
    for (const std::string& example : examples) {
      EXPECT_EQ(example.find("tbd-sim " + command), 0u) << example;
      EXPECT_LE(example.size(), 118u) << "it does not fit the screen";
    }
  }
}

TEST(ReadmeCommands, AreMany) { EXPECT_GE(commands().size(), 20u); }

}  // namespace
}  // namespace tbdsim
