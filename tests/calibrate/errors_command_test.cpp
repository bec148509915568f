// `tbd-calibrate errors` in-process: measured calls beside what a profile predicts.
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/calibrate/run_calibrate.h"
#include "tests/calibrate/synthetic.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
using testing::HasSubstr;

class ErrorsCommandTest : public testing::Test {
 protected:
  // The file of these records, whose times are multiplied by the factor.
  std::string write(const std::string& name, double factor) const {
    std::ostringstream text;
    write_csv_row(text, record_columns());
    for (Record record : records_) {
      record.time_s *= factor;
      write_record(text, record);
    }
    return directory_.write(name, text.str()).string();
  }
  static nlohmann::json row_of(const std::string& records, const std::string& profile) {
    const test::CliResult result =
        test::calibrate({"errors", records, "--profile", profile, "--format", "json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("errors").at(0);
  }

  test::TempDir directory_;
  std::vector<Record> records_ = test::gemm_records(test::specs_of({"titanxp"}), test::gemm_truth());
};

TEST_F(ErrorsCommandTest, TellsTheErrorsOfAProfileOnCallsThatAreSlower) {
  const std::string profile = (directory_.path() / "card.yaml").string();
  ASSERT_EQ(test::calibrate({"fit", write("true.csv", 1), "-o", profile}).exit_code, 0);
  const nlohmann::json fitted = row_of(write("again.csv", 1), profile);
  EXPECT_EQ(fitted.at("op"), "gemm");
  EXPECT_EQ(fitted.at("calls"), records_.size());
  EXPECT_LT(fitted.at("median"), 0.01);
  EXPECT_NEAR(row_of(write("slower.csv", 2), profile).at("bias"), -0.5, 0.01);
}

TEST_F(ErrorsCommandTest, RefusesUnknownProfilesAndFormats) {
  const std::string records = write("records.csv", 1);
  const test::CliResult unknown = test::calibrate({"errors", records, "--profile", "titanxq"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("titanxp"));
  const test::CliResult format =
      test::calibrate({"errors", records, "--profile", "titanxp", "--format", "tabel"});
  EXPECT_EQ(format.exit_code, 2);
  EXPECT_THAT(format.err, HasSubstr("did you mean 'table'"));
}

}  // namespace
}  // namespace tbdsim
