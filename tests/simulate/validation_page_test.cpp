// `tbd-sim validate --html`: marks where predictions and measurements are, the farthest off with their
// kernels.
#include "simulate/report/html/validation_page.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "hwspecs/base/file.h"
#include "simulate/prediction/predict.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ValidationPage : public testing::Test {
 protected:
  Page page(const std::vector<test::Row>& rows) {
    std::istringstream in(test::table(rows));
    const Validation validation = validate_runs(in, "runs.csv", "gpu", specs_, "", [](std::size_t) {});
    return validation_page(validation, "gpu", nullptr, farthest_runs(validation, "", specs_));
  }

  SpecCache specs_ = test::source_specs();
};

const Section& section_named(const Page& page, std::string_view title) {
  const auto found = std::find_if(page.sections.begin(), page.sections.end(),
                                  [&](const Section& section) { return section.title == title; });
  if (found == page.sections.end()) throw std::runtime_error("no section " + std::string(title));
  return *found;
}

TEST_F(ValidationPage, MarksAreWhereTheNumbersAre) {
  const Page made = page({test::run_row(), test::run_row({{"gpu", "p4000"}, {"value", "50"}})});
  const Prediction p =
      predict({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 64}, specs_);
  const View& by_gpu = section_named(made, "Predicted against measured").views.at(0);
  const Chart& chart = by_gpu.charts.at(0);
  EXPECT_TRUE(chart.x.logarithmic && chart.y.logarithmic);
  ASSERT_EQ(chart.series.size(), 3u);  // the band, two cards
  EXPECT_THAT(chart.series[0].low, ElementsAre(testing::DoubleEq(45), testing::DoubleEq(180)));
  const Series& titanxp = chart.series[2];
  EXPECT_EQ(titanxp.name, "titanxp");
  EXPECT_NEAR(titanxp.x.at(0), 200, 1e-9);
  EXPECT_NEAR(titanxp.low.at(0), titanxp.y.at(0) / p.interval_factor(), 1e-6 * titanxp.y.at(0));
  EXPECT_THAT(titanxp.hover.at(0), StartsWith("resnet50, mxnet 0.11, titanxp, fp32, batch 64 (score): "));
}

TEST_F(ValidationPage, TheFarthestOffComeFirstWithTheirKernels) {
  const Page made =
      page({test::run_row({{"value", "190"}}), test::run_row({{"batch_per_gpu", "32"}, {"value", "20"}}),
            test::run_row({{"batch_per_gpu", "16"}, {"value", "1"}, {"split", "fit"}})});
  const Section& worst = section_named(made, "The ten farthest off");
  ASSERT_EQ(worst.views.size(), 2u);  // of score alone
  EXPECT_THAT(worst.views[0].name, HasSubstr("batch 32"));
  EXPECT_EQ(worst.views[0].charts.size(), 2u);
  EXPECT_GT(worst.views[0].tables.at(0).rows.size(), 5u);
}

TEST_F(ValidationPage, EveryPredictedConfigurationHasARow) {
  const Page made = page({test::run_row(), test::run_row({{"value", "210"}}),
                          test::run_row({{"gpu", "no_such_gpu"}}), test::run_row({{"split", "fit"}})});
  EXPECT_EQ(section_named(made, "Every configuration").views.at(0).tables.at(0).rows.size(), 2u);
}

TEST_F(ValidationPage, WithoutPredictionsThereIsTheTableOfReasons) {
  const Page made = page({test::run_row({{"gpu", "no_such_gpu"}})});
  ASSERT_EQ(made.sections.size(), 1u);
  EXPECT_THAT(made.sections[0].views.at(0).tables.at(0).notes, testing::Contains(HasSubstr("no_such_gpu")));
}

TEST(ValidateHtml, WritesOneFileAndNothingElse) {
  if (!std::filesystem::exists(TBDSIM_SOURCE_DIR "/simulate/report/html/assets/plotly.min.js.gz"))
    GTEST_SKIP() << "Plotly is not installed";
  const test::TempDir directory;
  const std::string runs = directory.write("runs.csv", test::table({test::run_row()})).string();
  const std::string file = (directory.path() / "page.html").string();
  const test::CliResult result = test::run({"validate", "--runs", runs, "--html", file});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  constexpr std::uintmax_t kMost = 6'000'000;
  EXPECT_THAT(read_file(file, kMost), HasSubstr("Predictions against measured runs"));
  EXPECT_EQ(test::run({"validate", "--runs", runs, "--html", file, "--format", "csv"}).err,
            "tbd-sim: --html writes a page; expected no --unseen, --worst, --format or -o beside it\n");
}

}  // namespace
}  // namespace tbdsim
