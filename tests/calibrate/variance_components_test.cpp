// Components of intervals from errors with known ones, from too few, and `tbd-calibrate fit-intervals`.
#include "calibrate/framework_fit/variance_components.h"

#include <cmath>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "tests/calibrate/run_calibrate.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

constexpr std::size_t index_of(Effect effect) { return static_cast<std::size_t>(effect); }

RunError run(double error, const char* gpu, const char* version, const char* model, const char* set) {
  RunError run{
      .log_error = error, .exposure = {}, .gpu = gpu, .version = version, .model = model, .set = set};
  for (const Effect effect : {Effect::gpu, Effect::version, Effect::model, Effect::set, Effect::rest})
    run.exposure[index_of(effect)] = 1;
  return run;
}

// Two GPUs whose runs err by +0.1 and -0.1 whatever else they are: all products within a GPU are 0.01.
TEST(VarianceComponents, AllThatRunsOfAGpuShareIsItsEffect) {
  const std::vector<RunError> runs{run(0.1, "a", "v", "x", "s"), run(0.1, "a", "w", "y", "t"),
                                   run(-0.1, "b", "v", "z", "t"), run(-0.1, "b", "w", "u", "s")};
  const Effects components = variance_components(runs).components;
  EXPECT_NEAR(components[index_of(Effect::gpu)], 0.1, 1e-9);
  for (const Effect none : {Effect::version, Effect::set, Effect::rest})
    EXPECT_NEAR(components[index_of(none)], 0, 1e-6);
}

// 30 GPUs x 30 models with normal effects of 0.10 and 0.05 and a rest of 0.03: each is found within 26 %,
// twice the standard error of a deviation estimated from 30 draws, 1 / sqrt(2 x 29).
TEST(VarianceComponents, FindsThoseThatErrorsWereMadeWith) {
  constexpr int kLevels = 30;
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> gpus, models;
  for (int i = 0; i < kLevels; ++i) gpus.push_back(0.10 * normal(random));
  for (int i = 0; i < kLevels; ++i) models.push_back(0.05 * normal(random));
  std::vector<RunError> runs;
  for (int g = 0; g < kLevels; ++g) {
    for (int m = 0; m < kLevels; ++m) {
      const double error = gpus[static_cast<std::size_t>(g)] + models[static_cast<std::size_t>(m)];
      runs.push_back(run(error + 0.03 * normal(random), "", "", "", ""));
      runs.back().gpu = std::to_string(g);
      runs.back().model = std::to_string(m);
      runs.back().exposure[index_of(Effect::version)] = runs.back().exposure[index_of(Effect::set)] = 0;
    }
  }
  const VarianceFit fit = variance_components(runs);
  EXPECT_NEAR(fit.components[index_of(Effect::gpu)], 0.10, 0.026);
  EXPECT_NEAR(fit.components[index_of(Effect::model)], 0.05, 0.013);
  EXPECT_NEAR(fit.components[index_of(Effect::rest)], 0.03, 0.0078);
  EXPECT_TRUE(fit.pooled[index_of(Effect::set)]);
  EXPECT_EQ(fit.components[index_of(Effect::set)], kComponents[index_of(Effect::set)]);
  EXPECT_NEAR(coverage_of(fit.components, runs), 0.8, 0.08);
}

// A set of one run has no pair that would tell its effect from the rest.
TEST(VarianceComponents, ASetOfOneRunIsNamed) {
  const std::vector<RunError> runs{run(0.1, "a", "v", "x", "s"), run(0.2, "b", "w", "y", "s"),
                                   run(0.3, "c", "u", "z", "alone")};
  EXPECT_THAT(variance_components(runs).sets_of_one, testing::ElementsAre("alone"));
}

TEST(VarianceComponents, TooFewRuns) {
  const std::vector<RunError> runs{run(0.1, "a", "v", "x", "s"), run(0.2, "b", "w", "y", "s")};
  EXPECT_THROW((void)variance_components(runs), UsageError);
}

// A table that is given twice holds each run twice: the same configurations.
TEST(FitIntervals, RepeatsCountOnce) {
  const std::string file = std::string(TBDSIM_SOURCE_DIR) + "/simulate/validation/runs/tf_official.csv";
  const test::CliResult once = test::calibrate({"--data-dir", TBDSIM_SOURCE_DIR, "fit-intervals", file});
  ASSERT_EQ(once.exit_code, 0) << once.err;
  EXPECT_EQ(test::calibrate({"--data-dir", TBDSIM_SOURCE_DIR, "fit-intervals", file, file}).out, once.out);
}

// Ten runs tell K; without them five runs with hardly any kernels want one beyond its bound, so that there
// is no share of a fit without the set. A set of two would show single runs.
TEST(FitIntervals, ASetWithoutWhichNothingIsFitted) {
  std::string table = "set,gpu,version,model,log_error,development,amount of kernels\n";
  const auto add = [&](const std::string& set, int rows, const std::string& kernels) {
    for (int i = 0; i < rows; ++i)
      table += fmt::format("{0},g{0}{1},v{0}{1},m{0}{1},{2},false,{3}\n", set, i, 0.01 * (i + 1), kernels);
  };
  add("many", 10, "1");
  add("few", 3, "0.0001");
  add("pair", 2, "0.0001");
  const test::TempDir directory;
  const std::string file = directory.write("errors.csv", table).string();
  const test::CliResult result =
      test::calibrate({"--data-dir", TBDSIM_SOURCE_DIR, "fit-intervals", "--errors", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex("\nmany +10 .* %  +-\n"));
  EXPECT_THAT(result.out, testing::ContainsRegex("\nfew +3 .* % +[0-9]+ %\n"));
  EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("\npair")));
}

TEST(FitIntervals, PrintsComponentsAndCoverage) {
  const std::string folder = std::string(TBDSIM_SOURCE_DIR) + "/simulate/validation/runs/";
  const test::CliResult result = test::calibrate({"--data-dir", TBDSIM_SOURCE_DIR, "fit-intervals",
                                                  folder + "tf_official.csv", folder + "mxnet_titanx.csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("6 configurations\n"));
  EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("development")));
  EXPECT_THAT(result.out, testing::HasSubstr("the pooled one stands for them: mxnet_titanx"));
  const test::CliResult none =
      test::calibrate({"--data-dir", TBDSIM_SOURCE_DIR, "fit-intervals", folder + "dlperf.csv"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, testing::HasSubstr("no row to fit to"));
}

}  // namespace
}  // namespace tbdsim
