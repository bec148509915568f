// Tables of measured runs: every row is predicted or says why not, and the sums agree. The project's own
// tables of two sources, one of times and one of memory, and, where it lies beside the source tree,
// ../shared/reference/runs/runs.csv.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <gmock/gmock.h>

#include "simulate/validation/validate_runs.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

class MeasuredRuns : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(file_))
      GTEST_SKIP() << "the table of measured runs is not here; the project's own are tested";
    std::ifstream in(file_);
    CsvReader reader(in, file_.string());
    for (std::vector<std::string> row; reader.next(row);) ++table_rows_;
    ASSERT_GT(table_rows_, 0);
  }

  Validation validate(const std::string& by) {
    std::ifstream in(file_);
    return validate_runs(in, file_.string(), by, specs_, "uncalibrated", [](std::size_t) {});
  }

  const std::filesystem::path file_ = std::filesystem::path(TBDSIM_SOURCE_DIR) / GetParam();
  SpecCache specs_ = test::source_specs();
  int table_rows_ = 0;
};

void expect_sane(const GroupErrors& e) {
  SCOPED_TRACE(e.section + " " + e.group);
  EXPECT_LE(e.covered_rows, e.rows);
  EXPECT_LE(e.configurations, e.covered_rows);
  EXPECT_EQ(e.configurations == 0, e.covered_rows == 0);
  EXPECT_TRUE(std::isfinite(e.mean) && std::isfinite(e.bias) && std::isfinite(e.noise));
  EXPECT_LE(e.median, e.p90);
  EXPECT_LE(e.p90, e.max);
  EXPECT_LE(e.mean, e.max);
  EXPECT_LE(std::abs(e.bias), e.mean + 1e-12);
  EXPECT_GE(e.coverage, 0);
  EXPECT_LE(e.coverage, 1);
  EXPECT_GE(e.noise, 0);
}

TEST_P(MeasuredRuns, EveryGroupingIsSane) {
  for (const char* by : {"group", "set", "gpu", "model", "framework"}) {
    SCOPED_TRACE(by);
    const Validation validation = validate(by);
    int rows = 0;
    int covered = 0;
    for (const GroupErrors& e : validation.groups) {
      expect_sane(e);
      rows += e.rows;
      covered += e.covered_rows;
    }
    EXPECT_LE(rows, table_rows_);
    EXPECT_GT(covered, 0);
    // Every row is covered or has a reason.
    const int reasons = std::accumulate(validation.not_covered.begin(), validation.not_covered.end(), 0,
                                        [](int sum, const auto& reason) { return sum + reason.second; });
    EXPECT_EQ(covered + reasons, table_rows_);
  }
}

// The same rows whatever they are grouped by.
TEST_P(MeasuredRuns, GroupingDoesNotChangeWhatIsCovered) {
  const auto covered = [&](const std::string& by) {
    int rows = 0;
    for (const GroupErrors& e : validate(by).groups) rows += e.covered_rows;
    return rows;
  };
  EXPECT_EQ(covered("group"), covered("gpu"));
  EXPECT_EQ(covered("group"), covered("model"));
}

INSTANTIATE_TEST_SUITE_P(Tables, MeasuredRuns,
                         testing::Values("simulate/validation/runs/ngc_pytorch.csv",
                                         "simulate/validation/runs/mxnet_titanx.csv",
                                         "../shared/reference/runs/runs.csv"));

}  // namespace
}  // namespace tbdsim
