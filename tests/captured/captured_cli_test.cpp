// Every command that takes a model takes a step file.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/file.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

const std::string kFile = TBDSIM_SOURCE_DIR "/tests/captured/steps/resnet50_fp16.step.json.gz";

class CapturedCommands : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(CapturedCommands, TakeAStepFile) {
  std::vector<std::string> arguments = GetParam();
  for (std::string& argument : arguments) {
    if (argument == "FILE") argument = kFile;
  }
  const test::CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AnyOf(HasSubstr("resnet50"), HasSubstr("ResNet-50")));
}

INSTANTIATE_TEST_SUITE_P(
    All, CapturedCommands,
    testing::Values(
        std::vector<std::string>{"--model", "FILE", "--gpu", "rtx3090", "--batch", "32"},
        std::vector<std::string>{"show", "FILE"},
        std::vector<std::string>{"kernels", "FILE", "--gpu", "rtx3090", "--batch", "32"},
        std::vector<std::string>{"memory", "FILE", "--gpu", "rtx3090", "--batch", "32"},
        std::vector<std::string>{"max-batch", "FILE", "--gpu", "rtx3090"},
        std::vector<std::string>{"--model", "FILE", "--gpu", "rtx3090", "--batch", "32", "--explain"},
        std::vector<std::string>{"trace", "FILE", "--gpu", "rtx3090", "--batch", "32"},
        std::vector<std::string>{"scaling", "FILE", "--gpu", "rtx3090", "--batch", "32", "--gpus", "1,2"},
        std::vector<std::string>{"whatif", "FILE", "--gpu", "rtx3090", "--batch", "32", "--set",
                                 "gpu.memory_bandwidth=+50%"},
        std::vector<std::string>{"sweep", "--model", "FILE", "--framework", "pytorch", "--gpu", "rtx3090,t4",
                                 "--batch", "8,16"}));

// ReLUs, sums and statistics of a compiled step are parts of other kernels; convolutions are not.
TEST(CapturedCommands, ListTheKernelsOfACompiledStep) {
  const test::CliResult result = test::run({"kernels", kFile, "--gpu", "rtx3090", "--batch", "32",
                                            "--framework", "pytorch_compiled_graphs", "--format", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr(",conv,"), HasSubstr(",fused_pointwise,"), HasSubstr(",fused_reduction,"),
                    Not(HasSubstr(",relu,")), Not(HasSubstr(",batch_norm,"))));
}

TEST(CapturedCommands, ReportAStepFile) {
  if (!std::filesystem::exists(TBDSIM_SOURCE_DIR "/simulate/report/html/assets/plotly.min.js.gz"))
    GTEST_SKIP() << "no Plotly: simulate/report/html/assets/get_plotly.sh gets it";
  const test::TempDir dir;
  const std::string page = (dir.path() / "page.html").string();
  const test::CliResult result =
      test::run({"report", "--model", kFile, "--gpu", "rtx3090", "--batch", "32", "-o", page});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_file(page, 100'000'000), HasSubstr("layer4.2.conv3"));
}

TEST(CapturedCommands, ShowParametersAndMultiplyAdds) {
  const test::CliResult result = test::run({"show", kFile, "--format", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("25557032"), HasSubstr("layer4.2.conv3")));
}

TEST(CapturedCommands, NameOperatorsWithoutALowering) {
  const test::TempDir dir;
  const auto file =
      dir.write("x.step.json", R"({"format": "tbdsim step", "version": 1, "name": "odd", "title": "Odd",
    "sample": "image", "length": 0, "captured_with": {"torch": "2.9.0", "batches": [2, 3]}, "precision": "fp32",
    "channels_last": false, "modules": [["", "Net"]],
    "storages": [["input", [0, 4000], -1, 0, ""], ["activation", [0, 4000], 0, -1, ""]],
    "tensors": [[0, "f32", [[0, 1], 1000], [1000, 1], 0], [1, "f32", [[0, 1], 1000], [1000, 1], 0]],
    "operators": [["mine.odd.default", "forward", 0, [{"t": 0}], [1]]], "warnings": ["take care"]})");
  const test::CliResult result = test::run({"--model", file.string(), "--gpu", "rtx3090", "--batch", "32"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("take care"), HasSubstr("mine.odd.default (1)")));
  const test::CliResult kernels =
      test::run({"kernels", file.string(), "--gpu", "rtx3090", "--batch", "32", "--format", "csv"});
  EXPECT_THAT(kernels.out, AllOf(HasSubstr("mine.odd"), HasSubstr("roofline")));
}

TEST(CapturedCommands, KnowAStepOfOneBatchAtThatBatchAlone) {
  const test::TempDir dir;
  const auto file =
      dir.write("loop.step.json", R"({"format": "tbdsim step", "version": 1, "name": "loop", "title": "Loop",
    "sample": "image", "length": 0, "captured_with": {"torch": "2.9.0", "batches": [4]}, "precision": "fp32",
    "channels_last": false, "modules": [["", "Net"]],
    "storages": [["input", 16000, -1, 0, ""], ["activation", 16000, 0, -1, ""]],
    "tensors": [[0, "f32", [4, 1000], [1000, 1], 0], [1, "f32", [4, 1000], [1000, 1], 0]],
    "operators": [["aten.relu.default", "forward", 0, [{"t": 0}], [1]]], "warnings": []})");
  const test::CliResult known = test::run({"--model", file.string(), "--gpu", "rtx3090", "--batch", "4"});
  EXPECT_EQ(known.exit_code, 0) << known.err;
  const test::CliResult other = test::run({"--model", file.string(), "--gpu", "rtx3090", "--batch", "8"});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err, AllOf(HasSubstr("loop.step.json: was captured at a batch of 4 alone"),
                               HasSubstr("expected --batch 4"), HasSubstr("batches=[8]")));
}

}  // namespace
}  // namespace tbdsim
