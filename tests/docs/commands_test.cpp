// Every tbd-sim command that README.md, docs/ or a command's help shows works as written, in a folder that
// holds the reader's own files: those of docs/examples and tests/import/files, and runs.csv.
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

const fs::path kSource = TBDSIM_SOURCE_DIR;

// README.md and every page of docs/, sorted.
std::vector<fs::path> pages() {
  std::vector<fs::path> found{kSource / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Lines inside ```sh fences that begin with the program's name; a backslash continues in the next line.
std::vector<std::string> commands_of(const fs::path& page) {
  std::vector<std::string> found;
  std::istringstream lines(read_file(page, 1'000'000));
  bool shell = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) shell = line == "```sh";
    while (shell && line.ends_with('\\')) {
      std::string more;
      std::getline(lines, more);
      line = line.substr(0, line.size() - 1) + more;
    }
    if (shell && line.starts_with("tbd-sim ")) found.push_back(line);
  }
  return found;
}

std::vector<std::string> documented_commands() {
  std::vector<std::string> all;
  for (const fs::path& page : pages())
    for (const std::string& command : commands_of(page)) all.push_back(command);
  return all;
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

// Words as a shell has them: quotes hold words together, what follows '#' is a comment.
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

class DocumentedCommand : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const auto& entry : fs::directory_iterator(kSource / "docs/examples")) {
      const fs::path kind = entry.path().extension();
      if (kind == ".yaml" || kind == ".json") copy(entry.path(), entry.path().filename());
    }
    for (const auto& entry : fs::directory_iterator(kSource / "tests/import/files"))
      copy(entry.path(), entry.path().filename());
    copy(kSource / "simulate/validation/runs/tbd_paper.csv", "runs.csv");
    copy(kSource / "tests/captured/torchvision.resnet50.224.fp32.nchw.adam.step.json.gz",
         "resnet50.step.json.gz");  // as written by the pages' Python
    before_ = fs::current_path();
    fs::current_path(directory_.path());
  }
  void TearDown() override { fs::current_path(before_); }

 private:
  void copy(const fs::path& file, const fs::path& name) { fs::copy_file(file, directory_.path() / name); }

  test::TempDir directory_;
  fs::path before_;
};

TEST_P(DocumentedCommand, WorksAsWritten) {
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

INSTANTIATE_TEST_SUITE_P(Pages, DocumentedCommand, testing::ValuesIn(documented_commands()),
                         [](const auto& command) { return "number_" + std::to_string(command.index); });

INSTANTIATE_TEST_SUITE_P(Help, DocumentedCommand, testing::ValuesIn(all_examples()),
                         [](const auto& command) { return "number_" + std::to_string(command.index); });

TEST(HelpExamples, EveryCommandHasSomeOfItsOwn) {
  for (const std::string& command : command_names()) {
    const std::vector<std::string> examples = examples_of(command);
    EXPECT_FALSE(examples.empty()) << command;
    for (const std::string& example : examples)
      EXPECT_TRUE(example.starts_with("tbd-sim " + command)) << example;
  }
}

TEST(DocumentedCommands, EveryCommandIsShown) {
  const std::vector<std::string> documented = documented_commands();
  for (const std::string& command : command_names()) {
    const auto shows = [&](const std::string& line) {
      return line.starts_with("tbd-sim " + command + " ") || line == "tbd-sim " + command;
    };
    EXPECT_TRUE(std::any_of(documented.begin(), documented.end(), shows)) << "no page shows " << command;
  }
}

}  // namespace
}  // namespace tbdsim
