// Predictions as if nothing had been measured on a GPU: what stands in for what, and which rows are judged.
#include <gmock/gmock.h>

#include "simulate/prediction/predict.h"
#include "simulate/validation/holdout_gpu.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::run_row;
using testing::EndsWith;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Unseen, OtherGpusProfileStandsIn) {
  const SpecCache specs = test::source_specs();
  const Scenario titanxp{.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 64};
  const auto profile = [&](CalibrationLevel level) {
    return hold_out(titanxp, specs.catalog(), level).profile;
  };
  EXPECT_EQ(profile(CalibrationLevel::full), "");
  EXPECT_THAT(profile(CalibrationLevel::one_gemm), EndsWith("holdout/titanxp_one_gemm.yaml"));
  EXPECT_THAT(profile(CalibrationLevel::datasheet), EndsWith("holdout/titanxp.yaml"));
}

// On a K80 no kernel was timed, but its runs set a constant of MXNet 1.2.
TEST(Unseen, FrameworksFittedWithoutTheGpuStandIn) {
  const SpecCache specs = test::source_specs();
  const Scenario k80{.model = "resnet50", .framework = "mxnet_1_2", .gpu = "k80", .batch = 64};
  const Scenario unseen = hold_out(k80, specs.catalog(), CalibrationLevel::datasheet);
  EXPECT_EQ(unseen.profile, "");
  EXPECT_THAT(unseen.framework, EndsWith("holdout/mxnet_1_2_without_k80.yaml"));
  EXPECT_EQ(hold_out(k80, specs.catalog(), CalibrationLevel::full).framework, "mxnet_1_2");
}

// Time of all attention of a step of Llama 3.2 1B on two sequences of 4,096 words.
Seconds attention_time(const std::string& gpu, const std::string& framework) {
  SpecCache specs = test::source_specs();
  const Prediction p = predict({.model = "llama3.2_1b",
                                .framework = framework,
                                .gpu = gpu,
                                .batch = 2,
                                .precision = "bf16_pure",
                                .sizes = {{"sequence_length", 4096}}},
                               specs);
  const Iteration& iteration = p.iterations[0];
  Seconds sum;
  for (std::size_t k = 0; k < iteration.step->kernels.size(); ++k) {
    if (iteration.step->kernels[k].op != "attention") continue;
    sum += iteration.timeline.kernels[k].end - iteration.timeline.kernels[k].start;
  }
  return sum;
}

// Boards that nobody timed beside those of the same chip with no more power, bandwidth or exponentials; and
// FlashAttention 2 on an H100 beside an A100, on which it was timed: its peak is three times as high, of
// which products warp by warp reach 0.62.
TEST(Unseen, AttentionOnSiblingsIsNoSlower) {
  EXPECT_LE(attention_time("h200", "pytorch_hf"), attention_time("h100_sxm", "pytorch_hf"));
  EXPECT_LE(attention_time("h200", "pytorch_hf_cudnn"), attention_time("h100_sxm", "pytorch_hf_cudnn"));
  EXPECT_LE(attention_time("b300", "pytorch_hf_cudnn"), attention_time("b200", "pytorch_hf_cudnn"));
  EXPECT_LE(attention_time("gb300", "pytorch_hf_cudnn"), attention_time("gb200", "pytorch_hf_cudnn"));
  EXPECT_LT(attention_time("h100_sxm", "pytorch_hf") * 1.3, attention_time("a100_sxm_80gb", "pytorch_hf"));
  EXPECT_LT(attention_time("h100_sxm", "pytorch_hf_cudnn"), attention_time("h100_sxm", "pytorch_hf"));
}

// <framework>_without_<gpu>: both exist, and it says what its constants are from.
TEST(Unseen, EveryFrameworkFileIsOfAFrameworkAndAGpu) {
  SpecCache specs = test::source_specs();
  int files = 0;
  for (const auto& file :
       fs::directory_iterator(fs::path(TBDSIM_SOURCE_DIR) / "simulate/frameworks/holdout")) {
    ++files;
    const std::string name = file.path().stem().string();
    SCOPED_TRACE(name);
    const std::size_t at = name.find("_without_");
    ASSERT_NE(at, std::string::npos);
    const Framework& whole = *specs.framework(name.substr(0, at));
    (void)specs.gpu(name.substr(at + std::string("_without_").size()));
    const Framework without = read_framework(file.path(), {}, specs.catalog().folder(Kind::framework));
    EXPECT_EQ(without.family, whole.family);
    EXPECT_THAT(without.title, HasSubstr(whole.title));
    EXPECT_TRUE(without.versions.empty());  // no table of runs means it
    EXPECT_TRUE(without.sources != whole.sources ||
                without.launch_model.sources != whole.launch_model.sources);
  }
  EXPECT_GT(files, 0);
}

// Only rows with times on one GPU of the given name count.
TEST(Unseen, RowsThatAreJudged) {
  const test::TempDir directory;
  const auto runs = directory.write(
      "runs.csv", test::table({run_row(), run_row({{"batch_per_gpu", "32"}}), run_row({{"gpus", "4"}}),
                               run_row({{"metric", "memory_used"}, {"unit", "bytes"}, {"value", "1e9"}}),
                               run_row({{"gpu", "k80"}})}));
  SpecCache specs = test::source_specs();
  const auto of = [&](const std::string& gpu) {
    return holdout_errors({runs}, gpu, "gpu", specs, [](std::size_t) {});
  };
  const auto titanxp = of("titanxp");
  ASSERT_EQ(titanxp.size(), 1u);
  EXPECT_EQ(titanxp[0].measured.configurations, 2);
  EXPECT_EQ(titanxp[0].data_sheet.configurations, 2);
  ASSERT_TRUE(titanxp[0].one_product.has_value());
  EXPECT_NE(titanxp[0].measured.mean, titanxp[0].data_sheet.mean);

  const auto all = of("");
  ASSERT_EQ(all.size(), 2u);  // by name: k80, titanxp
  EXPECT_FALSE(all[0].one_product.has_value());
  EXPECT_EQ(all[0].measured.mean, all[0].data_sheet.mean);  // MXNet 0.11 was fitted to no run of it
}

TEST(Unseen, OnTheCommandLine) {
  const test::CliResult result = test::run({"validate", "--unseen", "gtx1080ti"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("one product"));
  EXPECT_THAT(result.out, HasSubstr("cnn_fp32_single"));
}

}  // namespace
}  // namespace tbdsim
