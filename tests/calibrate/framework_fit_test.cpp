// `tbd-calibrate fit-framework` in-process: runs made by the simulation with known constants are fitted; what
// it writes, prints and refuses.
#include "calibrate/framework_fit/framework_fit.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "hwspecs/base/file.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "tests/calibrate/run_calibrate.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

// A catalogue as the source tree's, with one more version of MXNet.
constexpr const char* kToy =
    "title: Toy        # how it is shown\n"
    "based_on: mxnet\n"
    "versions: [toy 1]\n"
    "# What issuing costs.\n"
    "execution:\n"
    "  kernel: 10 us   # each\n"
    "  wait: 30 us\n"
    "  segment: 15\n"
    "  after_update: false\n"
    "  workers: 1\n"
    "  sources:\n"
    "    kernel: \"estimate: a \\\"launch\\\"\"  # to be fitted\n"
    "    segment: theirs\n"
    "    after_update: none\n"
    "    wait: 'estimate: a wake-up'\n"
    "    workers: one\n"
    "workspace_limit: 300 MiB\n"
    "sources:\n"
    "  workspace_limit: \"as another's\"\n"
    "# The end.\n";

class FrameworkFitTest : public testing::Test {
 protected:
  FrameworkFitTest() {
    const fs::path source = TBDSIM_SOURCE_DIR;
    for (const char* folder : {"hwspecs", "graphs", "calibrate"})
      fs::create_directory_symlink(source / folder, directory_.path() / folder);
    fs::create_directories(directory_.path() / "simulate");
    fs::create_directory_symlink(source / "simulate/presets", directory_.path() / "simulate/presets");
    fs::copy(source / "simulate/frameworks", directory_.path() / "simulate/frameworks");
    write_toy(kToy);
  }

  void write_toy(const std::string& yaml) const { directory_.write("simulate/frameworks/toy.yaml", yaml); }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string write(const std::vector<test::Row>& rows) const {
    return directory_.write("runs.csv", test::table(rows)).string();
  }

  // Rows as measured where the framework is as `change` makes it.
  template <class Change>
  std::vector<test::Row> rows_of_a_changed_framework(Change change,
                                                     const std::vector<const char*>& batches = {"1", "4",
                                                                                                "32"}) const {
    SpecCache specs(Catalog::from(directory_.path()));
    Framework changed = *specs.framework("toy");
    change(changed);
    std::vector<test::Row> rows;
    for (const char* model : {"resnet50", "alexnet", "inception_v3"}) {
      for (const char* gpu : {"titanxp", "p4000"}) {
        for (const char* batch : batches) {
          const Prediction p =
              predict({.model = model, .framework = "toy", .gpu = gpu, .batch = std::stoll(batch)}, specs);
          const double rate = static_cast<double>(p.scenario.batch) / iteration_time_with(changed, p).si();
          rows.push_back(row(
              {{"model", model}, {"gpu", gpu}, {"batch_per_gpu", batch}, {"value", std::to_string(rate)}}));
        }
      }
    }
    return rows;
  }
  static test::Row row(const test::Row& changes) {
    test::Row row = test::run_row({{"version", "toy 1, of a test"}, {"split", "fit"}});
    for (const auto& [column, value] : changes) row[column] = value;
    return row;
  }

  test::CliResult fit(const std::string& file, const std::string& constants, Arguments more = {}) const {
    Arguments all{
        "--data-dir", directory_.path().string(), "fit-framework", file, "--framework", "toy", "--constants",
        constants};
    all.insert(all.end(), more.begin(), more.end());
    return test::calibrate(all);
  }
  void expect_refused(const std::string& file, const std::string& constants, const std::string& message,
                      const Arguments& more = {}) const {
    const test::CliResult result = fit(file, constants, more);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, "tbd-calibrate: " + message + "\n");
  }
  // The fitted file in the place of the one it was made from.
  Framework written(const std::string& file) const {
    write_toy(read_file(file, 1U << 20U));
    return read_framework(path("simulate/frameworks/toy.yaml"));
  }

  test::TempDir directory_;
};

void slower(Framework& framework) {
  framework.launch_model.launch_overhead = Seconds(25e-6);
  framework.launch_model.sync_overhead = Seconds(200e-6);
  framework.factors[index_of(KernelKind::convolution)] = 1.2;
}

TEST_F(FrameworkFitTest, FindsTheConstantsThatMadeTheRuns) {
  const std::string file = write(rows_of_a_changed_framework(slower, {"1", "2", "4", "32"}));
  const test::CliResult result = fit(file, "kernel,wait,factors.convolution", {"-o", path("out.yaml")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Framework fitted = written(path("out.yaml"));
  EXPECT_NEAR(fitted.launch_model.launch_overhead.si(), 25e-6, 1.5e-6);
  EXPECT_NEAR(fitted.launch_model.sync_overhead.si(), 200e-6, 20e-6);
  EXPECT_NEAR(fitted.factors[index_of(KernelKind::convolution)], 1.2, 0.05);
  EXPECT_EQ(fitted.factors[index_of(KernelKind::gemm)], 1);
}

TEST_F(FrameworkFitTest, OfKindsThatShareAFactorEachGetsIt) {
  const std::string file = write(rows_of_a_changed_framework([](Framework& framework) {
    framework.factors[index_of(KernelKind::convolution)] = 1.3;
    framework.factors[index_of(KernelKind::gemm)] = 1.3;
  }));
  const test::CliResult result = fit(file, "factors.convolution+gemm", {"-o", path("out.yaml")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Framework fitted = written(path("out.yaml"));
  EXPECT_NEAR(fitted.factors[index_of(KernelKind::gemm)], 1.3, 0.08);
  EXPECT_EQ(fitted.factors[index_of(KernelKind::convolution)], fitted.factors[index_of(KernelKind::gemm)]);
  EXPECT_THAT(fitted.sources.at("factors"), HasSubstr("convolution, gemm fit: 18 single-GPU runs"));
}

// Common to both GPUs: with priors of one width the factor takes two thirds of its logarithm, the GPUs' own
// factors the rest.
TEST_F(FrameworkFitTest, OfAnArchitectureIsWhatItsGpusHaveInCommon) {
  const std::string file =
      write(rows_of_a_changed_framework([](Framework& framework) { framework.factors_on["sm_61"] = 1.3; }));
  const test::CliResult result = fit(file, "factors.on.sm_61", {"-o", path("out.yaml")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Framework fitted = written(path("out.yaml"));
  EXPECT_NEAR(std::log(fitted.factors_on.at("sm_61")), std::log(1.3) * 2 / 3, 0.03);
  EXPECT_EQ(fitted.factors[index_of(KernelKind::gemm)], 1);
  EXPECT_THAT(fitted.sources.at("factors"), HasSubstr("on sm_61 fit: "));
}

// One row that is far off (a typing error) moves nothing.
TEST_F(FrameworkFitTest, AnOutlierCountsLittle) {
  std::vector<test::Row> rows = rows_of_a_changed_framework(
      [](Framework& framework) { framework.launch_model.launch_overhead = Seconds(25e-6); });
  rows[0]["value"] = std::to_string(std::stod(rows[0]["value"]) * 10);
  ASSERT_EQ(fit(write(rows), "kernel", {"-o", path("out.yaml")}).exit_code, 0);
  EXPECT_NEAR(written(path("out.yaml")).launch_model.launch_overhead.si(), 25e-6, 1e-6);
}

TEST_F(FrameworkFitTest, KeepsTheTextAroundTheConstants) {
  const std::string file = write(rows_of_a_changed_framework(slower));
  ASSERT_EQ(fit(file, "kernel,update", {"-o", path("out.yaml")}).exit_code, 0);
  const std::string text = read_file(path("out.yaml"), 1U << 20U);
  const Framework fitted = written(path("out.yaml"));
  EXPECT_THAT(
      fitted.launch_model.sources.at("kernel"),
      testing::StartsWith("fit: 18 single-GPU runs, tbd-calibrate fit-framework; leave-one-model-out "));
  std::string expected = kToy;
  const auto replace = [&](const std::string& old, const std::string& with) {
    expected.replace(expected.find(old), old.size(), with);
  };
  replace("10 us ", to_text(fitted.launch_model.launch_overhead) + " ");
  replace("  sources:", "  update: " + to_text(fitted.launch_model.update_overhead) + "\n  sources:");
  replace("\"estimate: a \\\"launch\\\"\"", '"' + fitted.launch_model.sources.at("kernel") + '"');
  replace("    kernel: \"",
          "    update: \"" + fitted.launch_model.sources.at("update") + "\"\n    kernel: \"");
  EXPECT_EQ(text, expected);
}

// The GPU is always busy, however long a launch takes.
TEST_F(FrameworkFitTest, WhatTheRunsDoNotTellStaysAnEstimate) {
  const std::string file = write({row({{"model", "alexnet"}, {"batch_per_gpu", "512"}, {"value", "1000"}}),
                                  row({{"model", "alexnet"}, {"batch_per_gpu", "256"}, {"value", "1000"}})});
  const test::CliResult result = fit(file, "kernel", {"-o", path("out.yaml")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("stays an estimate: the runs do not tell it"));
  EXPECT_EQ(read_file(path("out.yaml"), 1U << 20U), kToy);
}

TEST_F(FrameworkFitTest, ScoreRowsSetNothing) {
  std::vector<test::Row> rows = rows_of_a_changed_framework(slower);
  const test::CliResult without = fit(write(rows), "kernel,wait", {"-o", path("a.yaml")});
  for (test::Row score :
       rows_of_a_changed_framework([](Framework& f) { f.launch_model.launch_overhead = Seconds(1e-3); })) {
    score["split"] = "score";
    rows.push_back(score);
  }
  const test::CliResult with = fit(write(rows), "kernel,wait", {"-o", path("b.yaml")});
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(read_file(path("a.yaml"), 1U << 20U), read_file(path("b.yaml"), 1U << 20U));
  EXPECT_THAT(without.out, ContainsRegex("score rows, not used +none"));
  EXPECT_THAT(with.out, ContainsRegex("score rows, not used +18 "));
}

TEST_F(FrameworkFitTest, UsesRowsThatMeanTheFramework) {
  std::vector<test::Row> rows = rows_of_a_changed_framework(slower);
  const std::string alone = fit(write(rows), "kernel").out;
  for (const test::Row& other :
       {test::Row{{"version", "0.11"}}, test::Row{{"gpus", "4"}}, test::Row{{"use", "context"}},
        test::Row{{"framework", "tensorflow"}}, test::Row{{"metric", "memory_used"}, {"use", "memory"}},
        test::Row{{"model", "no_such_model"}}}) {
    rows.push_back(row(other));
    rows.back()["value"] = "1";
  }
  EXPECT_EQ(fit(write(rows), "kernel").out, alone);
}

TEST_F(FrameworkFitTest, UsesRowsOfSeveralGpusWhereAsked) {
  std::vector<test::Row> rows = rows_of_a_changed_framework(slower);
  const std::string alone = fit(write(rows), "kernel").out;
  rows.push_back(row({{"gpus", "2"}, {"network", "pcie3"}, {"value", "30"}}));
  rows.push_back(row({{"gpus", "8"}, {"network", "pcie3"}, {"value", "90"}}));
  rows.push_back(row({{"gpus", "2"}, {"machines", "2"}, {"network", "eth10g"}, {"value", "30"}}));
  EXPECT_EQ(fit(write(rows), "kernel").out, alone);
  EXPECT_THAT(fit(write(rows), "kernel", {"--gpus", "2"}).out,
              HasSubstr("Toy: 19 runs of up to 2 GPUs to fit"));
}

TEST_F(FrameworkFitTest, ReportsEachRow) {
  const std::string file = write(rows_of_a_changed_framework(slower));
  const test::CliResult result = fit(file, "kernel,wait,factors.convolution", {"--details"});
  EXPECT_THAT(result.out,
              HasSubstr("Toy: 18 single-GPU runs to fit; models alexnet, inception_v3, resnet50; GPUs "
                        "p4000, titanxp"));
  EXPECT_THAT(result.out, HasSubstr("\np4000    inception_v3  fp32      32"));

  EXPECT_THAT(result.out, HasSubstr("batch 16 and above, fitted to 4 and below"));
}

TEST_F(FrameworkFitTest, RefusesConstantsThatThereAreNot) {
  const std::string file = write({row({})});
  expect_refused(file, "kernel,update,wait,iteration,gap",
                 "--constants: 5 named; at most 4 may be fitted for a version of a framework");
  expect_refused(
      file, "kernle",
      "--constants: unknown constant 'kernle'; expected kernel, step, update, wait, iteration, gap, "
      "factors.KIND, factors.half_convolution or factors.on.sm_80; did you mean 'kernel'?");
  expect_refused(file, "factors.on.a100",
                 "--constants: 'a100' is no compute capability; expected one as sm_80");
  expect_refused(
      file, "factors.conovlution",
      "--constants: unknown kernel kind 'conovlution'; expected one of convolution, gemm, recurrent, "
      "batch_norm, layer_norm, elementwise, pooling, softmax, reduction, transpose, gather, transfer, "
      "update; did you mean 'convolution'?");
  expect_refused(file, "kernel,kernel", "--constants: kernel is named twice");
  expect_refused(file, "factors.gemm,factors.convolution+gemm", "--constants: factors.gemm is named twice");
  expect_refused(file, "", "--constants: none named; expected some, as kernel,wait,factors.convolution+gemm");
}

TEST_F(FrameworkFitTest, RefusesATableWithoutFitRows) {
  const std::string file = write({row({{"split", "score"}}), row({{"model", "no_such_model"}})});
  expect_refused(
      file, "kernel",
      file +
          ": no row to fit toy to; expected rows of one GPU with use time and split fit whose version "
          "means it; its 1 score rows are not for fits; 1 not covered: model 'no_such_model' is not in "
          "the catalogue");
  expect_refused(path("none.csv"), "kernel",
                 path("none.csv") + ": cannot be read: No such file or directory");
}

TEST_F(FrameworkFitTest, RefusesOutputThatCannotBeWritten) {
  const std::string file = write({row({})});
  expect_refused(file, "kernel", "/no/such/folder/p.yaml: cannot be written: No such file or directory",
                 {"-o", "/no/such/folder/p.yaml"});
  expect_refused(file, "kernel", "/dev/full: cannot be written: No space left on device",
                 {"-o", "/dev/full"});
}

TEST_F(FrameworkFitTest, AnInterruptLeavesNothingBehind) {
  const std::string file = write({row({})});
  const test::CliResult result =
      test::calibrate({"--data-dir", directory_.path().string(), "fit-framework", file, "--framework", "toy",
                       "--constants", "kernel", "-o", path("out.yaml")},
                      true);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_FALSE(fs::exists(path("out.yaml")));
}

TEST_F(FrameworkFitTest, TheClocksRunAgainAsInThePrediction) {
  SpecCache specs(Catalog::from(directory_.path()));
  const Prediction p =
      predict({.model = "resnet50", .framework = "toy", .gpu = "titanxp", .batch = 32}, specs);
  EXPECT_EQ(iteration_time_with(*p.framework, p), p.iteration_time());
  Framework free = *p.framework;
  free.launch_model = {};
  const Seconds kernels = iteration_time_with(free, p);
  const Seconds twice = iteration_time_with(with_kernel_factor(free, 2), p);
  EXPECT_NEAR(twice / kernels, 2, 1e-9);
}

TEST(FrameworkFitToMeasuredRuns, RowsOfMxnetFitNoWorseThanBefore) {
  const fs::path file = fs::path(TBDSIM_SOURCE_DIR) / "simulate/validation/runs/mxnet_perf.csv";
  SpecCache specs(Catalog::from(TBDSIM_SOURCE_DIR));
  std::ifstream in(file);
  const RunRows rows =
      read_run_rows(in, file.string(), "mxnet_1_2", *specs.framework("mxnet_1_2"), 1, specs, [] {});
  ASSERT_FALSE(rows.fit.empty());
  RowsToFit pointers;
  for (const RunRow& row : rows.fit) pointers.push_back(&row);
  const auto constants = parse_fit_constants("kernel,update");
  const FrameworkFit fit = fit_framework(*specs.framework("mxnet_1_2"), constants, pointers, [] {});
  ASSERT_EQ(fit.constants.size(), 2U);
  for (const FittedConstant& f : fit.constants) {
    EXPECT_GE(f.value, f.constant.least);
    EXPECT_LE(f.value, f.constant.most);
    EXPECT_EQ(f.value == f.before, !f.determined);
  }
}

TEST(FitConstants, AFactorOfConvolutionsInHalfPrecision) {
  const FitConstant half = parse_fit_constants("factors.half_convolution").front();
  Framework framework;
  framework.factors.fill(1);
  set_value(half, 1.3, framework);
  EXPECT_EQ(framework.half_convolution, 1.3);
  EXPECT_EQ(value_of(half, framework), 1.3);
  EXPECT_EQ(framework.factors[index_of(KernelKind::convolution)], 1);
}

}  // namespace
}  // namespace tbdsim
