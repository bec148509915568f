// Cross-validation of published tables (published_tables.h): of the whole tables the errors are of the size
// that a study of them found; of a few rows the formula beats a constant share of the peak.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/calibrate/published_tables.h"
#include "tests/calibrate/run_calibrate.h"

namespace tbdsim {
namespace {

// Mean geometric error over the GPUs, of calls of a fifth of the shapes left out.
struct Errors {
  double formula, with_residuals, roofline, constant, coverage;
};

Errors errors_of(const std::filesystem::path& table, const std::string& family,
                 const std::string& precision) {
  const test::CliResult result = test::calibrate(
      {"crossval", table, "--family", family, "--left-out", "shapes", "--quick", "--format", "json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  for (const auto& row : document["errors"]) {
    if (row["precision"] != precision) continue;
    return {row["formula"], row["error"], row["roofline"], row["constant"], row["coverage"]};
  }
  ADD_FAILURE() << "no row of " << precision;
  return {};
}

class PublishedCrossval : public testing::Test {
 protected:
  void SetUp() override {
    if (!whole_) GTEST_SKIP() << "the whole published tables are not here; a few rows of each were tested";
  }
  const std::optional<std::filesystem::path> whole_ = test::whole_tables();
};

TEST(CrossvalOfFewRows, TheFormulaBeatsAConstantShareOfThePeak) {
  for (const auto& [table, family] :
       {std::pair{"deepbench_gemm.csv", "gemm"}, {"deepbench_rnn.csv", "recurrent"}}) {
    SCOPED_TRACE(table);
    const Errors e = errors_of(test::few_rows() / table, family, "fp32");
    EXPECT_LT(e.formula, 0.35);
    EXPECT_LT(e.with_residuals, e.formula);
    EXPECT_LT(e.formula, e.constant);
    EXPECT_NEAR(e.coverage, 0.8, 0.15);
  }
}

// The study's formula: 18.0 % for products with all samples; here at most 200 of each GPU. A constant share
// of the peak is off by a factor.
TEST_F(PublishedCrossval, DeepBenchProducts) {
  const Errors e = errors_of(*whole_ / "deepbench_gemm.csv", "gemm", "fp32");
  EXPECT_LT(e.formula, 0.25);
  EXPECT_LT(e.with_residuals, e.formula);
  EXPECT_LT(e.formula, e.roofline);
  EXPECT_LT(e.roofline, e.constant);
  EXPECT_NEAR(e.coverage, 0.8, 0.1);
}

TEST_F(PublishedCrossval, DeepBenchRecurrentLayers) {
  const Errors e = errors_of(*whole_ / "deepbench_rnn.csv", "recurrent", "fp32");
  EXPECT_LT(e.formula, 0.25);
  EXPECT_LT(e.formula, e.roofline);
  EXPECT_LT(e.roofline, e.constant);
  EXPECT_NEAR(e.coverage, 0.8, 0.1);
}

}  // namespace
}  // namespace tbdsim
