// Names, lists and numbers as people type and read them.
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "graphs/optimizer.h"
#include "hwspecs/base/file.h"
#include "simulate/prediction/metrics.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/cells.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Arguments = std::vector<std::string>;

std::string output(const Arguments& arguments) {
  const test::CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

const std::string kMyModel = std::string(TBDSIM_SOURCE_DIR) + "/docs/examples/my_model.yaml";

TEST(TypedNames, OtherNamesAreTheSameScenario) {
  const std::string named =
      output({"--gpu", "v100_sxm2_16gb", "--batch", "8", "--model", "resnet50", "--framework", "mxnet"});
  for (const char* gpu : {"V100-SXM2-16GB", "tesla v100-sxm2-16gb", "V100_SXM2_16GB"}) {
    EXPECT_EQ(output({"--gpu", gpu, "--batch", "8", "--model", "ResNet-50", "--framework", "MXNET"}), named)
        << gpu;
  }
}

TEST(TypedNames, OtherNamesInASweepAndATableOfRuns) {
  EXPECT_THAT(
      output({"sweep", "--gpu", "Tesla T4", "--model", "resnet50", "--framework", "pytorch", "--batch", "8"}),
      HasSubstr("\nresnet50,pytorch,Tesla T4,8,"));
  const test::TempDir directory;
  const std::string header =
      "gpu,framework,precision,model,variant,batch_per_gpu,gpus,machines,metric,unit,version\n";
  const std::string rest = ",,8,1,1,throughput,images/s,\n";
  const auto runs = directory.write("runs.csv", header + "titanxp,mxnet,fp32,resnet50" + rest +
                                                    "NVIDIA TITAN XP,MXNet,fp32,ResNet-50" + rest);
  std::istringstream lines(output({"predict", "--scenarios", runs.string()}));
  std::string line;
  std::getline(lines, line);
  std::vector<std::string> predicted;
  while (std::getline(lines, line)) predicted.push_back(line.substr(line.find("images/s")));
  ASSERT_EQ(predicted.size(), 2u);
  EXPECT_EQ(predicted[0], predicted[1]);
  EXPECT_THAT(predicted[0], testing::EndsWith(",ok"));
}

TEST(TypedNames, AModelFileTakesAFrameworkBehindAColon) {
  const auto framework_of = [](const std::string& model) {
    const json rows = json::parse(output(
        {"scaling", model, "--gpu", "titanxp", "--batch", "8", "--gpus", "1", "--format", "json"}))["points"];
    EXPECT_EQ(rows.size(), 1u) << model;
    return rows[0]["model"].get<std::string>() + ":" + rows[0]["framework"].get<std::string>();
  };
  EXPECT_EQ(framework_of(kMyModel + ":pytorch"), "my_model:pytorch");
  EXPECT_EQ(framework_of("resnet50:mxnet"), "resnet50:mxnet");
  const std::string framework = std::string(TBDSIM_SOURCE_DIR) + "/docs/examples/my_framework.yaml";
  EXPECT_EQ(framework_of("resnet50:" + framework), "resnet50:my_framework");
  EXPECT_EQ(framework_of(kMyModel + ":" + framework), "my_model:my_framework");
}

TEST(TypedNames, APathWithACommaStandsInQuotes) {
  const test::TempDir directory;
  std::filesystem::copy_file(kMyModel, directory.path() / "a,b.yaml");
  const std::string path = (directory.path() / "a,b.yaml").string();
  const std::string rows = output({"sweep", "--model", "\"" + path + "\",resnet50", "--framework", "pytorch",
                                   "--gpu", "titanxp", "--batch", "8"});
  EXPECT_THAT(rows, AllOf(HasSubstr("\n\"" + path + "\",pytorch,titanxp,8,"),
                          HasSubstr("\nresnet50,pytorch,"), Not(HasSubstr("cannot be read"))));
  const auto yaml = directory.write(
      "sweep.yaml", "model: ['" + path + "', resnet50]\nframework: pytorch\ngpu: titanxp\nbatch: 8\n");
  EXPECT_EQ(output({"sweep", yaml.string()}), rows);
}

// The network assumed without --network is a valid --network, with the same result.
TEST(Scaling, SaysWhichNetworkItAssumes) {
  for (const char* gpu : {"titanxp", "v100_sxm2_16gb", "a100_sxm_80gb"}) {
    Arguments command{"scaling", "resnet50:pytorch", "--gpu", gpu, "--batch", "8", "--gpus", "1,2"};
    const std::string table = output(command);
    command.insert(command.end(), {"--format", "json"});
    const json rows = json::parse(output(command))["points"];
    EXPECT_EQ(rows[0]["network"], "");
    EXPECT_EQ(rows[0]["network_assumed"], false);
    EXPECT_EQ(rows[1]["network_assumed"], true);
    const auto network = rows[1]["network"].get<std::string>();
    EXPECT_THAT(table,
                AllOf(HasSubstr("  " + network + "*"), HasSubstr("\n*: assumed, as no --network is given.")));
    command.insert(command.end(), {"--network", network});
    const json said = json::parse(output(command))["points"];
    EXPECT_EQ(said[1]["network_assumed"], false);
    EXPECT_EQ(said[1]["throughput"], rows[1]["throughput"]) << gpu;
  }
}

TEST(Scaling, SaysWhichNetworkOfAMachineItTakes) {
  const json rows = json::parse(output({"scaling", "resnet50:mxnet", "--machine", "tbd_p4000", "--batch", "8",
                                        "--gpus", "1", "--machines", "1,2", "--format", "json"}))["points"];
  EXPECT_EQ(rows[0]["network_assumed"], false);
  EXPECT_EQ(rows[1]["network_assumed"], true);
  EXPECT_NE(rows[1]["network"], "");
}

TEST(KernelNames, AreCutOnATerminalOnly) {
  const Arguments command{"kernels", "wgan_gp", "--framework", "pytorch",
                          "--gpu",   "titanxp", "--batch",     "64"};
  constexpr const char* kWhole = "Generator.Res1.Shortcut.upsample";
  EXPECT_THAT(output(command), HasSubstr(kWhole));
  EXPECT_THAT(test::run_on_terminal(command).out, AllOf(Not(HasSubstr(kWhole)), HasSubstr("Gene..psample")));
  const test::TempDir directory;
  const std::string file = (directory.path() / "kernels.txt").string();
  Arguments to_file = command;
  to_file.insert(to_file.end(), {"-o", file});
  EXPECT_EQ(test::run_on_terminal(to_file).exit_code, 0);
  EXPECT_EQ(read_file(file, 1U << 24U), output(command));
}

TEST(SmallNumbers, ShowThreeSignificantDigits) {
  EXPECT_EQ(three_digits(0), "0");
  EXPECT_EQ(three_digits(0.42), "0.420");
  EXPECT_EQ(three_digits(0.001234), "0.00123");
  EXPECT_EQ(three_digits(0.00001234), "1.23e-05");
  EXPECT_EQ(three_digits(0.9996), "1.00");
  EXPECT_EQ(three_digits(1.234), "1.23");
  EXPECT_EQ(three_digits(99.96), "100");
  EXPECT_EQ(three_digits(12345.6), "12346");
}

TEST(SmallNumbers, AThroughputIsNeverShownAsNought) {
  const test::TempDir directory;
  std::string model = read_file(kMyModel, 1U << 20U);
  const std::string one = "training:\n  - {graph: main}";
  ASSERT_NE(model.find(one), std::string::npos);
  model.replace(model.find(one), one.size(), "training:\n  - {graph: main, repeat: 1000000}");
  const auto slow = directory.write("slow.yaml", model);
  const std::string table =
      output({"--gpu", "k80", "--batch", "1", "--model", slow.string(), "--framework", "pytorch"});
  EXPECT_THAT(table, testing::ContainsRegex("  0\\.00[0-9]*[1-9][0-9]* images/s"));
}

TEST(Sweep, HasTheEndsOfTheInterval) {
  const Arguments command{"sweep",   "--model", "resnet50", "--framework", "mxnet", "--gpu",
                          "titanxp", "--batch", "64",       "--format",    "jsonl"};
  const json row = json::parse(output(command));
  SpecCache specs = test::source_specs();
  const Interval interval =
      predict({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 64}, specs)
          .throughput_interval();
  EXPECT_NEAR(row["throughput_low"].get<double>(), interval.low, 1e-3);
  EXPECT_NEAR(row["throughput_high"].get<double>(), interval.high, 1e-3);
  EXPECT_LT(interval.low, row["throughput"].get<double>());
  Arguments chosen = command;
  chosen.insert(chosen.end(), {"--metrics", "throughput_low"});
  EXPECT_THAT(output(chosen), AllOf(HasSubstr("throughput_low"), Not(HasSubstr("throughput_high"))));
}

// The lists name all that a model file may contain, names that need no declaration too.
TEST(Lists, NameWhatModelFilesMaySay) {
  EXPECT_THAT(output({"list", "layers"}),
              AllOf(HasSubstr("$name"), HasSubstr("$in"), HasSubstr("parameters"), HasSubstr("sizes"),
                    HasSubstr("parts (1)"), HasSubstr("list optimizers")));
  const std::string optimizers = output({"list", "optimizers"});
  for (const Optimizer& optimizer : kOptimizers)
    EXPECT_THAT(optimizers, HasSubstr("\n" + std::string(optimizer.name) + " "));
  const std::string page = read_file(std::string(TBDSIM_SOURCE_DIR) + "/docs/extending.md", 1U << 20U);
  EXPECT_THAT(page, HasSubstr(optimizers));
}

TEST(TypedNames, FilesOfOtherProgramsSayWhatToDo) {
  const auto said = [](const std::string& model) {
    return test::run({"--gpu", "titanxp", "--batch", "8", "--model", model}).err;
  };
  EXPECT_THAT(said("net.onnx"), HasSubstr("'tbd-sim import net.onnx -o DIR' writes it"));
  EXPECT_THAT(said("somewhere/model.pth"), HasSubstr("holds weights; expected a model file"));
  EXPECT_THAT(said(std::string(TBDSIM_SOURCE_DIR) + "/tests/import/files/keras2_nested.json"),
              HasSubstr("'tbd-sim import' reads files of other programs"));
}

}  // namespace
}  // namespace tbdsim
