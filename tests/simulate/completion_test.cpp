// `tbd-sim completion bash` offers what the command line takes.
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::Contains;

// Standard output of a program, in words.
std::vector<std::string> words_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t count = fread(part.data(), 1, part.size(), pipe.get()))
    text.append(part.data(), count);
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The completions that bash offers for the last word; a function stands in for tbd-sim.
std::vector<std::string> offered(const std::string& words) {
  const test::TempDir directory;
  directory.write("completion", test::run({"completion", "bash"}).out);
  const std::string script =
      directory
          .write("ask",
                 "tbd-sim() { printf 'name,title\\nresnet50,x\\nresnet101,x\\n'; }\n"
                 "source " +
                     (directory.path() / "completion").string() + "\nCOMP_WORDS=(" + words +
                     ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tbd_sim\n"
                     "echo \"${COMPREPLY[@]}\"\n")
          .string();
  return words_of("bash " + script);
}

TEST(Completion, BashOffersCommandsOptionsAndNames) {
  EXPECT_THAT(offered("tbd-sim val"), testing::ElementsAre("validate"));
  EXPECT_THAT(offered("tbd-sim kernels --gpu x --below"), testing::ElementsAre("--below-average"));
  EXPECT_THAT(offered("tbd-sim --model resnet"), testing::ElementsAre("resnet50", "resnet101"));
  EXPECT_THAT(offered("tbd-sim trace resnet1"), testing::ElementsAre("resnet101"));
  EXPECT_THAT(offered("tbd-sim --format j"), testing::ElementsAre("json"));
  EXPECT_THAT(offered("tbd-sim list ''"), Contains("gpus"));
  EXPECT_THAT(offered("tbd-sim ''"),
              testing::IsSupersetOf({"kernels", "trace", "report", "validate", "predict", "--gpu"}));
}

TEST(Completion, IsForBash) {
  EXPECT_EQ(test::run({"completion", "bsh"}).err,
            "tbd-sim: completion: 'bsh' is unknown; expected one of bash; did you mean 'bash'?\n");
}

TEST(Quiet, IsForEveryCommand) {
  EXPECT_EQ(test::run({"list", "gpus", "--quiet"}).exit_code, 0);
  EXPECT_EQ(test::run({"--quiet", "--gpu", "titanxp", "--batch", "8", "--model", "alexnet"}).exit_code, 0);
}

}  // namespace
}  // namespace tbdsim
