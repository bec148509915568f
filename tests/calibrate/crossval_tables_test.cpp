// Cross-validation of published tables, where they lie beside the source tree (../shared/reference/kernels)
// or where TBDSIM_REFERENCE says: the errors are of the size that a study of the same tables found.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/calibrate/run_calibrate.h"

namespace tbdsim {
namespace {
namespace fs = std::filesystem;

fs::path folder() {
  const char* named = std::getenv("TBDSIM_REFERENCE");
  const fs::path reference = named != nullptr && *named != '\0'
                                 ? fs::path(named)
                                 : fs::path(TBDSIM_SOURCE_DIR).parent_path() / "shared/reference";
  return reference / "kernels";
}

// Mean geometric error over the GPUs, of calls of a fifth of the shapes left out.
struct Errors {
  double formula, with_residuals, roofline, constant, coverage;
};

Errors errors_of(const std::string& table, const std::string& family, const std::string& precision) {
  const test::CliResult result = test::calibrate({"crossval", folder() / table, "--family", family,
                                                  "--left-out", "shapes", "--quick", "--format", "json"});
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
    if (!fs::exists(folder() / "deepbench_gemm.csv")) GTEST_SKIP() << "no published tables at " << folder();
  }
};

// The study's formula: 18.0 % for products with all samples; here at most 200 of each GPU. A constant share
// of the peak is off by a factor.
TEST_F(PublishedCrossval, DeepBenchProducts) {
  const Errors e = errors_of("deepbench_gemm.csv", "gemm", "fp32");
  EXPECT_LT(e.formula, 0.25);
  EXPECT_LT(e.with_residuals, e.formula);
  EXPECT_LT(e.formula, e.roofline);
  EXPECT_LT(e.roofline, e.constant);
  EXPECT_NEAR(e.coverage, 0.8, 0.1);
}

TEST_F(PublishedCrossval, DeepBenchRecurrentLayers) {
  const Errors e = errors_of("deepbench_rnn.csv", "recurrent", "fp32");
  EXPECT_LT(e.formula, 0.25);
  EXPECT_LT(e.formula, e.roofline);
  EXPECT_LT(e.roofline, e.constant);
  EXPECT_NEAR(e.coverage, 0.8, 0.1);
}

}  // namespace
}  // namespace tbdsim
