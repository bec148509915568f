// `tbd-sim completion` offers what the command line takes, in each shell.
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

TEST(Completion, BashKeepsOptionsAndValuesApart) {
  EXPECT_THAT(offered("tbd-sim kernels ''"), testing::ElementsAre("resnet50", "resnet101"));
  EXPECT_THAT(offered("tbd-sim max-batch resnet1"), testing::ElementsAre("resnet101"));
  EXPECT_THAT(offered("tbd-sim kernels --batch ''"), testing::IsEmpty());  // a number
  EXPECT_THAT(offered("tbd-sim --model = resnet1"), testing::ElementsAre("resnet101"));
  EXPECT_THAT(offered("tbd-sim --model ="), testing::ElementsAre("resnet50", "resnet101"));
  EXPECT_THAT(offered("tbd-sim --model = resnet50 --format = c"), testing::ElementsAre("csv"));
  EXPECT_THAT(offered("tbd-sim trace"), testing::ElementsAre("trace"));
  EXPECT_THAT(offered("tbd-sim completion ''"), testing::ElementsAre("bash", "zsh", "fish"));
}

bool installed(const std::string& shell) { return !words_of("command -v " + shell).empty(); }

// Programs that stand in for tbd-sim, in fish and zsh alike once defined.
constexpr const char* kListed = "printf 'name,title\\nresnet50,x\\nresnet101,x\\n'";

// The completions of fish for a line, without what it says of each.
std::vector<std::string> fish_offers(const std::string& line) {
  const test::TempDir directory;
  directory.write("completion", test::run({"completion", "fish"}).out);
  const std::string script =
      directory
          .write("ask", std::string("function tbd-sim\n") + kListed + "\nend\nsource " +
                            (directory.path() / "completion").string() + "\ncomplete -C '" + line +
                            "' | cut -f1\n")
          .string();
  return words_of("HOME=" + directory.path().string() + " fish --no-config " + script);
}

TEST(Completion, FishOffersCommandsOptionsAndNames) {
  if (!installed("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(fish_offers("tbd-sim val"), testing::ElementsAre("validate"));
  EXPECT_THAT(fish_offers("tbd-sim kernels --gpu x --below"), testing::ElementsAre("--below-average"));
  EXPECT_THAT(fish_offers("tbd-sim --model resnet5"), testing::ElementsAre("resnet50"));
  EXPECT_THAT(fish_offers("tbd-sim trace resnet1"), testing::ElementsAre("resnet101"));
  EXPECT_THAT(fish_offers("tbd-sim --format j"), testing::ElementsAre("json"));
  EXPECT_THAT(fish_offers("tbd-sim list g"), testing::ElementsAre("gpus"));
}

// The completions of an interactive zsh, which a terminal of its own needs: `compadd` prints them.
std::vector<std::string> zsh_offers(const std::string& line) {
  const test::TempDir directory;
  directory.write("completion", test::run({"completion", "zsh"}).out);
  const std::string inside =
      directory
          .write("inside",
                 std::string("PROMPT=\nautoload -Uz compinit\ncompinit -u -D\ntbd-sim() { ") + kListed +
                     " }\nsource " + (directory.path() / "completion").string() +
                     "\ncompadd() {\n"
                     "  if [[ $* == *(-O|-A|-D)\\ * ]]; then builtin compadd \"$@\"; return; fi\n"
                     "  local -a hits\n  builtin compadd -A hits \"$@\"\n"
                     "  print -l -- $hits >>" +
                     (directory.path() / "hits").string() +
                     "\n  builtin compadd \"$@\"\n}\n"
                     "done_asking() { print done >>" +
                     (directory.path() / "done").string() +
                     "; exit }\nzle -N done_asking\nbindkey '^I' complete-word\nbindkey '^X' done_asking\n"
                     "print ready\n")
          .string();
  const std::string script = directory
                                 .write("ask",
                                        "zmodload zsh/zpty\nzpty z zsh -f -i\n"
                                        "zpty -w z 'source " +
                                            inside +
                                            "'\n"
                                            "zpty -r z text '*ready*'\n"
                                            "zpty -w -n z $'" +
                                            line +
                                            "\\t\\x18'\n"
                                            "while zpty -r z text; do :; done\n")
                                 .string();
  (void)words_of("HOME=" + directory.path().string() + " timeout 60 zsh -f " + script);
  return words_of("sort -u " + (directory.path() / "hits").string());
}

TEST(Completion, ZshOffersCommandsOptionsAndNames) {
  if (!installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_THAT(zsh_offers("tbd-sim val"), testing::ElementsAre("validate"));
  EXPECT_THAT(zsh_offers("tbd-sim kernels --gpu x --below"), Contains("--below-average"));
  EXPECT_THAT(zsh_offers("tbd-sim --model resnet5"), testing::ElementsAre("resnet50"));
  EXPECT_THAT(zsh_offers("tbd-sim trace resnet1"), testing::ElementsAre("resnet101"));
  EXPECT_THAT(zsh_offers("tbd-sim --format j"), testing::ElementsAre("json"));
  EXPECT_THAT(zsh_offers("tbd-sim list g"), testing::ElementsAre("gpus"));
}

TEST(Completion, IsForThreeShells) {
  EXPECT_EQ(test::run({"completion", "bsh"}).err,
            "tbd-sim: completion: 'bsh' is unknown; expected one of bash, zsh, fish; did you mean 'bash'?\n");
}

TEST(Quiet, IsForEveryCommand) {
  EXPECT_EQ(test::run({"list", "gpus", "--quiet"}).exit_code, 0);
  EXPECT_EQ(test::run({"--quiet", "--gpu", "titanxp", "--batch", "8", "--model", "alexnet"}).exit_code, 0);
}

}  // namespace
}  // namespace tbdsim
