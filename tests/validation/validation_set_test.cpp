// The project's own measured runs: every figure says where it was read, and
// tests/validation/expected_errors.csv holds the errors of the code as it stands, to the last digit. Where an
// error is to change, `tbd-sim validate --format csv -o tests/validation/expected_errors.csv` writes it anew;
// against_base.py compares it with the commit that the work started from.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "hwspecs/base/number.h"
#include "simulate/validation/published_runs.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

namespace fs = std::filesystem;

using Row = std::map<std::string, std::string>;

std::vector<Row> rows_of(std::istream& in, const std::string& file) {
  CsvReader reader(in, file);
  std::vector<Row> rows;
  for (std::vector<std::string> fields; reader.next(fields);) {
    Row& row = rows.emplace_back();
    for (std::size_t c = 0; c < fields.size(); ++c) row[reader.columns()[c]] = fields[c];
  }
  return rows;
}

std::vector<Row> rows_of(const fs::path& file) {
  std::ifstream in(file);
  return rows_of(in, file.string());
}

double number(const Row& row, const std::string& column) { return parse_number(row.at(column)).value_or(0); }

TEST(ValidationSet, EveryFigureHasItsSource) {
  for (const fs::path& file : validation_set(test::source_specs().catalog())) {
    SCOPED_TRACE(file.filename().string());
    for (const Row& row : rows_of(file)) {
      EXPECT_EQ(row.at("set"), file.stem().string());
      EXPECT_GT(number(row, "value"), 0);
      EXPECT_FALSE(row.at("source").empty());
      EXPECT_TRUE(row.at("use") != "context" || !row.at("note").empty()) << row.at("source");
    }
  }
}

// To a hundred-thousandth: the last bits of a time may depend on the processor.
TEST(ValidationSet, TheExpectedErrorsAreThoseOfTheCode) {
  const test::CliResult result = test::run({"validate", "--format", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream printed(result.out);
  const std::vector<Row> now = rows_of(printed, "now.csv");
  const std::vector<Row> expected =
      rows_of(fs::path(TBDSIM_SOURCE_DIR) / "tests/validation" / kExpectedErrors);
  ASSERT_EQ(now.size(), expected.size());
  for (std::size_t r = 0; r < now.size(); ++r) {
    for (const auto& [column, value] : expected[r]) {
      SCOPED_TRACE(expected[r].at("section") + " " + expected[r].at("group") + ", " + column);
      const auto error = parse_number(value);
      if (error) {
        EXPECT_NEAR(number(now[r], column), *error, 1e-5);
      } else {
        EXPECT_EQ(now[r].at(column), value);
      }
    }
  }
}

}  // namespace
}  // namespace tbdsim
