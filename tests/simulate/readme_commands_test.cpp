// Every command that the README shows of tbd-sim works as written, in a folder that holds what it calls the
// reader's own: my_gpu.yaml, my_model.yaml and runs.csv.
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
    fs::copy_file(TBDSIM_SOURCE_DIR "/tests/validation/tbd_paper.csv", directory_.path() / "runs.csv");
    before_ = fs::current_path();
    fs::current_path(directory_.path());
  }
  void TearDown() override { fs::current_path(before_); }

 private:
  test::TempDir directory_;
  fs::path before_;
};

TEST_P(ReadmeCommand, WorksAsWritten) {
  const std::vector<std::string> arguments = arguments_of(GetParam());
  if (arguments.at(0) == "report" && !fs::exists(TBDSIM_SOURCE_DIR "/simulate/web/plotly.min.js.gz"))
    GTEST_SKIP() << "Plotly is not installed";
  const test::CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, 0) << GetParam() << '\n' << result.err;
}

INSTANTIATE_TEST_SUITE_P(Readme, ReadmeCommand, testing::ValuesIn(commands()),
                         [](const auto& command) { return "number_" + std::to_string(command.index); });

TEST(ReadmeCommands, AreMany) { EXPECT_GE(commands().size(), 20u); }

}  // namespace
}  // namespace tbdsim
