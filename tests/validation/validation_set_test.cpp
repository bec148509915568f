// The project's own measured runs: what they must cover, that every figure says where it was read, and that
// no group's error has grown by more than a tenth since tests/validation/expected_errors.csv was written.
// Where an error is to change, `tbd-sim validate --format csv -o tests/validation/expected_errors.csv` writes
// it anew.
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "hwspecs/base/number.h"
#include "simulate/validation/published_runs.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::IsEmpty;
using testing::IsSupersetOf;
namespace fs = std::filesystem;

constexpr double kMostGrowth = 1.1;

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

// What is worse than expected, in words; `expected` and `now` are tables as `tbd-sim validate` writes them.
std::vector<std::string> worse(const std::vector<Row>& expected, const std::vector<Row>& now) {
  std::map<std::pair<std::string, std::string>, Row> found;
  for (const Row& row : now) found[{row.at("section"), row.at("group")}] = row;
  std::vector<std::string> complaints;
  for (const Row& row : expected) {
    const std::string name = row.at("section") + " " + row.at("group");
    const auto match = found.find({row.at("section"), row.at("group")});
    if (match == found.end()) {
      complaints.push_back(name + " is gone");
      continue;
    }
    if (number(match->second, "covered_rows") < number(row, "covered_rows"))
      complaints.push_back(name + " covers fewer rows: " + match->second.at("covered_rows"));
    if (number(match->second, "mean") > kMostGrowth * number(row, "mean"))
      complaints.push_back(name + " has an error of " + match->second.at("mean"));
    found.erase(match);
  }
  for (const auto& [key, row] : found) complaints.push_back(key.first + " " + key.second + " is new");
  return complaints;
}

TEST(ValidationSet, CoversWhatItMust) {
  std::set<std::string> gpus;
  std::set<std::string> frameworks;
  std::set<std::string> models;
  std::set<std::string> metrics;
  int judged = 0;
  int several = 0;
  for (const fs::path& file : validation_set(test::source_specs().catalog())) {
    for (const Row& row : rows_of(file)) {
      if (row.at("use") == "context") continue;
      ++judged;
      several += row.at("gpus") != "1";
      gpus.insert(row.at("gpu"));
      frameworks.insert(row.at("framework"));
      models.insert(row.at("model"));
      metrics.insert(row.at("metric"));
    }
  }
  EXPECT_GE(judged, 150);
  EXPECT_GE(gpus.size(), 12u);
  EXPECT_GE(several, 50);
  EXPECT_THAT(frameworks, IsSupersetOf({"tensorflow", "mxnet", "pytorch"}));
  EXPECT_THAT(models, IsSupersetOf({"resnet50", "inception_v3", "seq2seq", "faster_rcnn"}));
  EXPECT_THAT(metrics, IsSupersetOf({"throughput", "iteration_time", "memory_used"}));
}

// Every figure: its table's name, a number, and where it was read; one that is no fair target says why.
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

TEST(ValidationSet, NoErrorGrewByMoreThanATenth) {
  const test::CliResult result = test::run({"validate", "--format", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream now(result.out);
  const fs::path expected = fs::path(TBDSIM_SOURCE_DIR) / "tests/validation" / kExpectedErrors;
  EXPECT_THAT(worse(rows_of(expected), rows_of(now, "now.csv")), IsEmpty())
      << "if that is meant: tbd-sim validate --format csv -o tests/validation/expected_errors.csv";
}

// A line of the README for each group that judges.
TEST(ValidationSet, TheReadmeStatesTheExpectedErrors) {
  std::ifstream in(fs::path(TBDSIM_SOURCE_DIR) / "README.md");
  const std::string readme((std::istreambuf_iterator<char>(in)), {});
  for (const Row& row : rows_of(fs::path(TBDSIM_SOURCE_DIR) / "tests/validation" / kExpectedErrors)) {
    if (row.at("section") != "score" || row.at("configurations") == "0") continue;
    const std::string line =
        fmt::format("| `{}` | {} | {:.1f} % | {:+.1f} % |\n", row.at("group"), row.at("configurations"),
                    100 * number(row, "mean"), 100 * number(row, "bias"));
    EXPECT_THAT(readme, testing::HasSubstr(line));
  }
}

// Tests that the guard sees what it looks for.
TEST(ValidationSet, TheGuardCanFail) {
  const auto row = [](const std::string& group, const std::string& covered, const std::string& mean) {
    return Row{{"section", "score"}, {"group", group}, {"covered_rows", covered}, {"mean", mean}};
  };
  const std::vector<Row> expected{row("cnn", "10", "0.10"), row("rnn", "5", "0.20")};
  EXPECT_THAT(worse(expected, {row("cnn", "10", "0.1099"), row("rnn", "6", "0.05")}), IsEmpty());
  EXPECT_THAT(worse(expected, {row("cnn", "10", "0.1101"), row("rnn", "5", "0.20")}),
              testing::ElementsAre("score cnn has an error of 0.1101"));
  EXPECT_THAT(worse(expected, {row("cnn", "9", "0.05"), row("rnn", "5", "0.20")}),
              testing::ElementsAre("score cnn covers fewer rows: 9"));
  EXPECT_THAT(worse(expected, {row("cnn", "10", "0.10")}), testing::ElementsAre("score rnn is gone"));
  EXPECT_THAT(worse({}, {row("cnn", "10", "0.10")}), testing::ElementsAre("score cnn is new"));
}

}  // namespace
}  // namespace tbdsim
