// The command line: what each command answers and with which exit code. Exit code 1, a bug, comes from main()
// alone.
#include "simulate/cli/cli.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/simulate/runs_fixture.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::CliResult;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::vector<std::string> kCommands = {"list", "show", "kernels", "predict", "validate", "observations"};

TEST(Cli, HelpNamesEveryCommand) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"--help"}, {"-h"}}) {
    const CliResult result = test::run(arguments);
    EXPECT_EQ(result.exit_code, kExitOk);
    for (const std::string& command : kCommands)
      EXPECT_THAT(result.out, HasSubstr("  " + command + " ")) << command;
    EXPECT_THAT(result.out, AllOf(HasSubstr("--gpu"), HasSubstr("--batch"), HasSubstr("Examples:")));
    EXPECT_EQ(result.err, "");
  }
}

TEST(Cli, HelpOfEachCommand) {
  for (const std::string& command : kCommands) {
    const CliResult result = test::run({command, "--help"});
    EXPECT_EQ(result.exit_code, kExitOk) << command;
    EXPECT_THAT(result.out, HasSubstr("tbd-sim " + command)) << command;
  }
}

TEST(Cli, Version) {
  const CliResult result = test::run({"--version"});
  EXPECT_EQ(result.exit_code, kExitOk);
  EXPECT_THAT(result.out, testing::MatchesRegex("tbd-sim [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& part) {
  const CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, kExitUsage) << part;
  EXPECT_EQ(result.out, "") << part;
  EXPECT_THAT(result.err, AllOf(StartsWith("tbd-sim: "), HasSubstr(part)));
}

TEST(Cli, UnknownArguments) {
  expect_usage_error({"--gup", "titanxp"}, "unknown argument '--gup'; did you mean '--gpu'?");
  expect_usage_error({"lst", "gpus"}, "'lst'; did you mean 'list'?");
  expect_usage_error({"list", "gpsu"}, "did you mean 'gpus'?");
  expect_usage_error({"list"}, "list: says not of what; expected one of gpus");
  expect_usage_error({"show"}, "what");
  expect_usage_error({"predict"}, "--scenarios");
  expect_usage_error({"--gpu"}, "--gpu");
}

TEST(Cli, MissingAndWrongOptions) {
  expect_usage_error({"--batch", "64"}, "--gpu is missing");
  expect_usage_error({"--gpu", "titanxp"}, "--batch is missing");
  expect_usage_error({"--gpu", "titanxp", "--batch", "many"}, "'many' is not a whole number");
  expect_usage_error({"--gpu", "titanxp", "--batch", "0"}, "'0' is out of range");
  expect_usage_error({"--gpu", "titanxp", "--batch", "64", "--format", "jsno"}, "did you mean 'json'?");
  expect_usage_error({"validate", "--runs", "x.csv", "--by", "gpus"}, "did you mean 'gpu'?");
  expect_usage_error({"validate", "--unseen", "titnxp"}, "did you mean 'titanxp'?");
  expect_usage_error({"validate", "--unseen", "all", "--worst", "3"}, "--unseen compares the profiles");
  expect_usage_error({"validate", "--worst", "0"}, "--worst: '0' is out of range");
  expect_usage_error({"predict", "--scenarios", "/no/such.csv"}, "/no/such.csv");
  expect_usage_error({"--data-dir", "/no/such", "list", "gpus"}, "/no/such: no data directory of tbd-sim");
}

TEST(Cli, OutputThatCannotBeWritten) {
  expect_usage_error({"list", "gpus", "-o", "/no/such/directory/out.txt"}, "/no/such/directory/out.txt");
}

TEST(Cli, BatchThatDoesNotFitIsNoError) {
  const CliResult result = test::run({"--gpu", "p4000", "--batch", "4096", "--framework", "mxnet"});
  EXPECT_EQ(result.exit_code, kExitOk);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("!"), HasSubstr("the largest batch that fits is"), HasSubstr("hypothetical")));
}

TEST(Cli, EveryFrameworkOfEveryModelByDefault) {
  const CliResult all = test::run({"--gpu", "titanxp", "--batch", "64"});
  for (const char* framework : {"tensorflow", "mxnet", "cntk"}) EXPECT_THAT(all.out, HasSubstr(framework));
  const CliResult one =
      test::run({"--gpu", "titanxp", "--batch", "64", "--model", "resnet50", "--framework", "cntk"});
  EXPECT_THAT(one.out, AllOf(HasSubstr("cntk"), testing::Not(HasSubstr("mxnet"))));
}

// A suite names models in variants and on frameworks of its own.
TEST(Cli, AnotherSuite) {
  const test::TempDir directory;
  const std::string suite = directory
                                .write("s.yaml",
                                       "title: T\nmodels: [{model: resnet50, variant: v1, framework: cntk}, "
                                       "resnet18]\nsources: {models: t}\n")
                                .string();
  const CliResult result =
      test::run({"--suite", suite, "--gpu", "titanxp", "--batch", "8", "--format", "csv"});
  const std::vector<test::Row> rows = test::rows_of(result.out);
  ASSERT_EQ(rows.size(), 2u) << result.err;
  EXPECT_EQ(rows[0].at("variant"), "v1");
  EXPECT_EQ(rows[0].at("framework"), "cntk");
  EXPECT_EQ(rows[1].at("framework"), "pytorch");
  const CliResult both =
      test::run({"--suite", "tbd", "--model", "resnet50", "--gpu", "titanxp", "--batch", "8"});
  EXPECT_THAT(both.err, HasSubstr("--suite and --model are both given"));
}

// A framework that trains no variant says which do; a variant asked of another framework says whose it is.
TEST(Cli, WhoTrainsAVariant) {
  const std::vector<std::string> common = {"--model", "bert_large", "--gpu",       "v100_sxm2_16gb",
                                           "--batch", "2",          "--framework", "tensorflow"};
  EXPECT_THAT(test::run(common).err, HasSubstr("bert_large is trained by pytorch, not by 'tensorflow'"));
  std::vector<std::string> named = common;
  named.insert(named.end(), {"--variant", "squad"});
  EXPECT_THAT(test::run(named).out,
              HasSubstr("bert_large squad is trained by pytorch: on tensorflow it is hypothetical."));
}

// A member of a family goes by its own name.
TEST(Cli, SizesOfAFamilyAreModels) {
  const CliResult result =
      test::run({"--model", "efficientnet_b1", "--gpu", "titanxp", "--batch", "8", "--format", "csv"});
  ASSERT_EQ(test::rows_of(result.out).size(), 1u) << result.err;
  EXPECT_EQ(test::rows_of(result.out)[0].at("model"), "efficientnet_b1");
}

// Nobody's own variant is predicted for every framework there is.
TEST(Cli, VariantChoosesItsFrameworks) {
  const auto frameworks = [](const std::string& variant) {
    const CliResult result = test::run(
        {"--gpu", "titanxp", "--batch", "8", "--model", "resnet50", "--variant", variant, "--format", "csv"});
    std::vector<std::string> names;
    for (const test::Row& row : test::rows_of(result.out)) names.push_back(row.at("framework"));
    return names;
  };
  EXPECT_THAT(frameworks("mxnet_v2"), testing::ElementsAre("mxnet"));
  EXPECT_THAT(frameworks("v1"), testing::ElementsAre("cntk", "mxnet", "pytorch", "tensorflow"));
}

// The model may stand as it does for the command without a name.
TEST(Cli, ModelOfACommandByPlaceOrByOption) {
  const std::vector<std::string> rest{"--framework", "mxnet", "--gpu", "titanxp", "--batch", "4"};
  const auto run = [&rest](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    return test::run(arguments);
  };
  const CliResult place = run({"memory", "resnet50"});
  EXPECT_EQ(place.exit_code, kExitOk) << place.err;
  EXPECT_EQ(run({"memory", "--model", "resnet50"}).out, place.out);
}

TEST(Cli, OptionsMayStandOnEitherSideOfACommand) {
  const CliResult before = test::run({"--data-dir", TBDSIM_SOURCE_DIR, "list", "models"});
  const CliResult after = test::run({"list", "models", "--data-dir", TBDSIM_SOURCE_DIR});
  EXPECT_EQ(before.exit_code, kExitOk);
  EXPECT_EQ(before.out, after.out);
}

TEST(Cli, FileHoldsWhatTheScreenWouldShow) {
  const test::TempDir directory;
  const std::string file = (directory.path() / "out.txt").string();
  const CliResult screen = test::run({"list", "metrics"});
  EXPECT_THAT(screen.out, HasSubstr("step_time, tokens_per_second,"));  // of layouts
  EXPECT_EQ(test::run({"list", "metrics", "-o", file}).out, "");
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), screen.out);
}

// A signal sets the flag; the next row stops the command. The file that was begun is gone, an older one
// untouched.
TEST(Cli, InterruptLeavesNoFile) {
  const test::TempDir directory;
  const auto scenarios = directory.write("scenarios.csv", test::table({test::run_row(), test::run_row()}));
  const auto older = directory.write("older.csv", "as it was");
  const std::atomic<bool> interrupted = true;
  for (const std::string& output : {(directory.path() / "new.csv").string(), older.string()}) {
    std::ostringstream out;
    std::ostringstream err;
    const std::vector<std::string> arguments{"predict", "--scenarios", scenarios.string(), "-o", output};
    EXPECT_EQ(run_cli(arguments,
                      {.out = out, .err = err, .data_dir = TBDSIM_SOURCE_DIR, .interrupted = &interrupted}),
              kExitInterrupted);
    EXPECT_EQ(err.str(), "tbd-sim: interrupted\n");
  }
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("scenarios.csv", "older.csv"));
  std::ifstream in(older);
  std::string text;
  std::getline(in, text);
  EXPECT_EQ(text, "as it was");
}

TEST(Cli, InterruptStopsValidation) {
  const test::TempDir directory;
  const auto runs = directory.write("runs.csv", test::table({test::run_row()}));
  const std::atomic<bool> interrupted = true;
  std::ostringstream out;
  std::ostringstream err;
  const std::vector<std::string> arguments{"validate", "--runs", runs.string()};
  EXPECT_EQ(run_cli(arguments,
                    {.out = out, .err = err, .data_dir = TBDSIM_SOURCE_DIR, .interrupted = &interrupted}),
            kExitInterrupted);
  EXPECT_EQ(out.str(), "");
}

TEST(Cli, ProgressIsForTerminalsOnly) {
  const test::TempDir directory;
  const auto runs = directory.write("runs.csv", test::table({test::run_row()}));
  EXPECT_EQ(test::run({"validate", "--runs", runs.string()}).err, "");
}

// Standard output that fails (a full disk) is an error, not silence.
TEST(Cli, BrokenStandardOutput) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  std::ostringstream err;
  const std::vector<std::string> arguments{"list", "gpus"};
  EXPECT_EQ(run_cli(arguments, {.out = out, .err = err, .data_dir = TBDSIM_SOURCE_DIR}), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("standard output cannot be written"));
}

}  // namespace
}  // namespace tbdsim
