// `tbd-sim report`: its figures have the numbers of the predictions behind them.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "hwspecs/base/file.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/html/kernel_sections.h"
#include "simulate/report/html/paper_figures.h"
#include "simulate/report/html/report_page.h"
#include "simulate/report/html/scaling_sections.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Report : public testing::Test {
 protected:
  ReportData data(const std::vector<Scenario>& scenarios, const std::vector<std::string>& others = {}) {
    return report_data(scenarios, others, specs_);
  }

  const test::ToyWorld world_;
  SpecCache specs_ = test::source_specs();
};

const Series& series_named(const Chart& chart, std::string_view name) {
  const auto found = std::find_if(chart.series.begin(), chart.series.end(),
                                  [&](const Series& series) { return series.name == name; });
  if (found == chart.series.end()) throw std::runtime_error("no series " + std::string(name));
  return *found;
}

TEST_F(Report, ThroughputGrowsOverTheBatchesThatFit) {
  const ReportData toy = data({world_.slow_scenario(10)});
  const Section section = throughput_section(toy);
  const Chart& chart = section.views.at(0).charts.at(0);
  EXPECT_EQ(chart.y.title, "throughput, images/s");
  const Series& line = chart.series.at(0);
  ASSERT_EQ(line.x.size(), toy.growth[0].size());
  EXPECT_GT(line.x.size(), 5u);
  EXPECT_TRUE(toy.growth[0].back().fits);
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    const Prediction p = predict(world_.slow_scenario(std::int64_t{1} << i), specs_);
    EXPECT_EQ(line.x[i], static_cast<double>(p.scenario.batch));
    EXPECT_EQ(line.y[i], p.throughput());
    EXPECT_EQ(line.low[i], p.throughput_interval().low);
    EXPECT_EQ(line.high[i], p.throughput_interval().high);
  }
}

// The roofs are the toy GPU's 500 Mflop/s and 1 GB/s; the first matmul does 240 flop on 328 B in 0.73 us.
TEST_F(Report, RooflineHasEveryKernelBelowTheRoof) {
  const Section section = kernels_section(data({world_.slow_scenario(10)}));
  const Chart& chart = section.views.at(0).charts.at(0);
  const Series& products = series_named(chart, "gemm");
  ASSERT_EQ(products.x.size(), 2u);
  EXPECT_NEAR(products.x[0], 240.0 / 328, 1e-9);
  EXPECT_NEAR(products.y[0], 240 / 0.73e-6, 1);
  EXPECT_NEAR(products.size[0], 0.73 / 12.24, 1e-6);
  EXPECT_THAT(products.hover[0], HasSubstr("fc: matmul forward, 6 % of the time, 730 ns"));
  std::size_t marks = 0;
  for (const Series& series : chart.series) {
    if (series.mark != ChartMark::point) continue;
    marks += series.x.size();
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      EXPECT_LE(series.y[i], std::min(500e6, series.x[i] * 1e9) * (1 + 1e-9)) << series.name;
    }
  }
  EXPECT_EQ(marks, 7u);
  EXPECT_THAT(series_named(chart, "fp32 peak, 500 Mflop/s").y, ElementsAre(500e6, 500e6));
}

// toy_world.h says when kernels start; the thread issues until 8 us, then waits and works until 12.24.
TEST_F(Report, TimelineIsThatOfTheIteration) {
  const Section section = kernels_section(data({world_.slow_scenario(10)}));
  const Chart& chart = section.views.at(0).charts.at(1);
  const Series& products = series_named(chart, "gemm");
  EXPECT_NEAR(products.start.at(0), 1.25e-3, 1e-9);
  EXPECT_NEAR(products.start.at(1), 6.25e-3, 1e-9);
  EXPECT_NEAR(products.x.at(0), 0.73e-3, 1e-9);
  const Series& issues = series_named(chart, "issues");
  ASSERT_EQ(issues.x.size(), 1u);  // one after another
  EXPECT_NEAR(issues.x[0], 8e-3, 1e-9);
}

TEST_F(Report, MemoryIsThatOfThePlan) {
  const ReportData toy = data({world_.slow_scenario(10)});
  const Section section = memory_section(toy);
  const Chart& chart = section.views.at(0).charts.at(0);
  EXPECT_NEAR(*chart.x.to, 1.0 / 1024, 1e-12);  // GiB of the 1 MiB card
  double sum = 0;
  for (const Series& series : chart.series) sum += series.x.back();
  EXPECT_NEAR(sum * 1024 * 1024 * 1024, toy.growth[0].back().memory.total().si(), 1e-3);
}

TEST_F(Report, SharesMakeAHundred) {
  const Section section = time_section(data({world_.slow_scenario(10), world_.scenario(10)}));
  ASSERT_EQ(section.views.at(0).charts.size(), 3u);
  for (std::size_t c = 0; c < 2; ++c) {  // of what is measured and what not, the idle GPU is none
    for (const std::size_t bar : {0u, 1u}) {
      double sum = 0;
      for (const Series& series : section.views[0].charts[c].series) sum += series.x.at(bar);
      EXPECT_NEAR(sum, 100, 1e-6) << section.views[0].charts[c].title;
    }
  }
}

TEST_F(Report, ComparesWithOtherGpus) {
  const ReportData real =
      data({{.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 16}}, {"p4000", "k80"});
  const Section section = comparison_section(real);
  const Chart& chart = section.views.at(0).charts.at(0);
  ASSERT_EQ(chart.series.size(), 3u);
  const auto on = [&](const char* gpu) {
    return predict({.model = "resnet50", .framework = "mxnet", .gpu = gpu, .batch = 16}, specs_).throughput();
  };
  EXPECT_DOUBLE_EQ(chart.series[0].x[0], on("titanxp") / on("p4000"));
  EXPECT_DOUBLE_EQ(chart.series[1].x[0], 1);
  EXPECT_DOUBLE_EQ(chart.series[2].x[0], on("k80") / on("p4000"));
  EXPECT_TRUE(comparison_section(data({world_.slow_scenario(10)})).views.empty());
}

TEST_F(Report, SeveralGpusAreThoseOfScaling) {
  const Scenario scenario{.model = "resnet50", .framework = "mxnet", .gpu = "p4000", .batch = 32};
  const Section section = scaling_section(data({scenario}));
  const Series& bars = section.views.at(0).charts.at(0).series.at(0);
  EXPECT_THAT(bars.categories, ElementsAre("1 GPU", "2 GPUs", "4 GPUs", "2 machines x 1 GPU, ethernet_1g",
                                           "2 machines x 1 GPU, infiniband_100g"));
  const std::vector<ScalingPoint> points = predict_scaling(scenario, paper_clusters(), specs_);
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(bars.x.at(i), points[i].prediction.throughput());
  EXPECT_LT(bars.x[3], bars.x[0] * 1.5) << "the paper's observation 12: a slow network";
  EXPECT_THAT(bars.hover[0], HasSubstr("1.00 times one GPU, efficiency 100 %"));
}

TEST_F(Report, WhatWouldHelpIsWhatWhatifSays) {
  const Scenario scenario{.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 32};
  const Prediction p = predict(scenario, specs_);
  const Section quick = whatif_section(data({scenario}));
  EXPECT_EQ(quick.views.at(0).charts.size(), 1u);
  const Section whole =
      whatif_section(report_data(std::span(&scenario, 1), {}, specs_, {.sensitivities = true}));
  const auto& charts = whole.views.at(0).charts;
  const std::vector<UpperBound> bounds = upper_bounds(p);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    EXPECT_EQ(charts.at(0).series.at(0).categories.at(i), bounds[i].name);
    EXPECT_DOUBLE_EQ(charts.at(0).series.at(0).x.at(i), bounds[i].throughput / p.throughput());
  }
  const std::vector<Sensitivity> all = sensitivities(scenario, p, specs_);
  EXPECT_EQ(charts.at(1).series.at(0).categories.at(0), all.at(0).key);
  EXPECT_DOUBLE_EQ(charts.at(1).series.at(0).x.at(0), all.at(0).elasticity);
  EXPECT_LT(charts.at(1).series.at(0).x.size(), all.size()) << "those that matter nothing are left out";
}

TEST_F(Report, ABatchThatDoesNotFitIsLessened) {
  const ReportData toy = data({world_.slow_scenario(1'000'000)});
  EXPECT_FALSE(toy.all_fit);
  EXPECT_TRUE(toy.predictions[0].fits);
  EXPECT_EQ(toy.predictions[0].scenario.batch, toy.growth[0].back().scenario.batch);
}

TEST(ReportCommand, SaysWhatItNeeds) {
  const test::CliResult result = test::run({"report", "--gpu", "titanxp"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "tbd-sim: -o is missing; expected the HTML file to write\n");
}

TEST(ReportCommand, WritesOneFile) {
  if (!std::filesystem::exists(TBDSIM_SOURCE_DIR "/simulate/report/html/assets/plotly.min.js.gz"))
    GTEST_SKIP() << "Plotly is not installed";
  const test::TempDir directory;
  const std::string file = (directory.path() / "report.html").string();
  const auto report = [&](const std::string& gpu) {
    return test::run({"report", "--gpu", gpu, "--model", "resnet50", "--framework", "mxnet", "-o", file});
  };
  const test::CliResult result = report("titanxp");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  constexpr std::uintmax_t kMost = 6'000'000;
  const std::string first = read_file(file, kMost);
  EXPECT_THAT(first, HasSubstr("Training on NVIDIA TITAN Xp, fp32"));
  EXPECT_THAT(first, HasSubstr("From: the parts of the 80 % interval"));
  ASSERT_EQ(report("titanxp").exit_code, 0);
  EXPECT_TRUE(first == read_file(file, kMost)) << "two runs differ";
  EXPECT_EQ(report("titanpx").exit_code, 2);
  EXPECT_TRUE(first == read_file(file, kMost)) << "a failure touched the file";
}

// A Quadro P4000 has no bf16: nobody asked for it, and the page compares with a GPU that has.
TEST(ReportCommand, ComparesWithAGpuThatHasThePrecision) {
  if (!std::filesystem::exists(TBDSIM_SOURCE_DIR "/simulate/report/html/assets/plotly.min.js.gz"))
    GTEST_SKIP() << "Plotly is not installed";
  const test::TempDir directory;
  const std::string file = (directory.path() / "report.html").string();
  const test::CliResult result =
      test::run({"report", "--gpu", "h100_sxm", "--model", "bert_base", "--framework", "pytorch",
                 "--precision", "bf16_pure", "--batch", "4", "-o", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  constexpr std::uintmax_t kMost = 6'000'000;
  EXPECT_THAT(read_file(file, kMost), HasSubstr("NVIDIA A100 SXM4 80 GB"));
}

TEST(ReportCommand, OfTheWholeCatalogueIsSmallEnoughToSend) {
  if (!std::filesystem::exists(TBDSIM_SOURCE_DIR "/simulate/report/html/assets/plotly.min.js.gz"))
    GTEST_SKIP() << "Plotly is not installed";
  const test::TempDir directory;
  const std::string file = (directory.path() / "report.html").string();
  const test::CliResult result = test::run({"report", "--gpu", "titanxp", "--model", "all", "-o", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::size_t models = test::source_specs().catalog().names(Kind::model).size();
  EXPECT_LT(std::filesystem::file_size(file), models * 300'000u);
}

}  // namespace
}  // namespace tbdsim
