// Predictions as if nothing had been measured on a GPU: what stands in for what, and which rows are judged.
#include <gmock/gmock.h>

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
