// Observations as checks: what the reader accepts, the arithmetic of a check by hand, and which of the
// paper's twelve hold.
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/observations_table.h"
#include "simulate/validation/observations_reader.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

constexpr const char* kHead = R"(title: Toy
source: nobody
gpu: p4000
other_gpu: titanxp
cases:
  cnn: {model: resnet50, framework: mxnet, batches: [8, 16, 32]}
  other: {model: resnet50, framework: tensorflow, batches: [8, 16]}
  huge: {model: resnet50, framework: mxnet, batches: [100000]}
groups:
  both: [cnn, other]
observations:
)";

// One observation with these checks.
Observations read(const std::string& checks) {
  const test::TempDir directory;
  const auto file = directory.write(
      "toy.yaml", std::string(kHead) + "  - number: 1\n    statement: Toy\n    checks:\n" + checks);
  return read_observations(file);
}

ObservationResult observed(const std::string& checks) {
  static Observations observations;  // results refer to it
  static SpecCache specs = test::source_specs();
  observations = read(checks);
  return observe(observations, specs).at(0);
}

double throughput(const std::string& framework, const std::string& gpu, std::int64_t batch) {
  static SpecCache specs = test::source_specs();
  return predict({.model = "resnet50", .framework = framework, .gpu = gpu, .batch = batch}, specs)
      .throughput();
}

void expect_error(const std::string& checks, const std::string& part) {
  EXPECT_THAT([&] { (void)read(checks); }, testing::ThrowsMessage<SpecError>(HasSubstr(part))) << checks;
}

TEST(Observations, ReaderRefusesWhatItCannotMean) {
  expect_error("      - {of: [cnns], metric: throughput, at_least: 1}\n", "neither a case nor a group");
  expect_error("      - {of: [cnn], metric: throughput}\n", "expected at_least or at_most");
  expect_error("      - {of: [cnn], metric: throughput, at_leest: 1}\n", "at_leest");
  expect_error("      - {of: [cnn], at_least: 1}\n", "metric");
  expect_error("      - {of: [cnn], metric: throughput, over: [cnns], at_least: 1}\n", "neither a case");
  expect_error("      - {of: [cnn], metric: throughput, needed: 2, at_least: 1}\n", "needed");
  const test::TempDir directory;
  std::string text(kHead);
  text.replace(text.find("[8, 16, 32]"), 11, "[8, 32, 16]");
  const auto file = directory.write("toy.yaml", text + "  []\n");
  EXPECT_THAT([&] { (void)read_observations(file); },
              testing::ThrowsMessage<SpecError>(HasSubstr("expected ascending batches")));
}

TEST(Observations, UnknownMetricsAreErrors) {
  EXPECT_THAT([] { (void)observed("      - {of: [cnn], metric: thruput, at_least: 1}\n"); },
              testing::ThrowsMessage<UsageError>(HasSubstr("unknown metric 'thruput'")));
}

// At the largest batch unless one is named.
TEST(Observations, LevelAtTheLargestBatch) {
  const auto largest = observed("      - {of: [cnn], metric: throughput, at_least: 1}\n");
  EXPECT_DOUBLE_EQ(largest.checks[0].evidence[0].value, throughput("mxnet", "p4000", 32));
  EXPECT_EQ(largest.checks[0].evidence[0].subject, "cnn, batch 32");
  const auto named = observed("      - {of: [cnn], metric: throughput, at: 8, at_least: 1}\n");
  EXPECT_DOUBLE_EQ(named.checks[0].evidence[0].value, throughput("mxnet", "p4000", 8));
}

// The step farthest from holding is shown: with a lower limit that with the smallest ratio.
TEST(Observations, RatiosOverTheBatchBefore) {
  const double first = throughput("mxnet", "p4000", 16) / throughput("mxnet", "p4000", 8);
  const double last = throughput("mxnet", "p4000", 32) / throughput("mxnet", "p4000", 16);
  ASSERT_LT(last, first);
  const auto least = observed("      - {of: [cnn], metric: throughput, over: batch, at_least: 1}\n");
  EXPECT_DOUBLE_EQ(least.checks[0].evidence[0].value, last);
  EXPECT_EQ(least.checks[0].evidence[0].subject, "cnn, batch 32 over 16");
  const auto most = observed("      - {of: [cnn], metric: throughput, over: batch, at_most: 1.1}\n");
  EXPECT_DOUBLE_EQ(most.checks[0].evidence[0].value, first);
  const auto only = observed("      - {of: [cnn], metric: throughput, over: last_batch, at_most: 1.1}\n");
  EXPECT_DOUBLE_EQ(only.checks[0].evidence[0].value, last);
}

TEST(Observations, RatiosOverAnotherGpuAndOverTheLowestCase) {
  const auto gpus = observed("      - {of: [cnn], metric: throughput, over: gpu, at_least: 1}\n");
  EXPECT_DOUBLE_EQ(gpus.checks[0].evidence[0].value,
                   throughput("mxnet", "titanxp", 32) / throughput("mxnet", "p4000", 32));
  const auto cases = observed("      - {of: [cnn], metric: throughput, over: [both], at_least: 1}\n");
  const double lowest = std::min(throughput("mxnet", "p4000", 32), throughput("tensorflow", "p4000", 16));
  EXPECT_DOUBLE_EQ(cases.checks[0].evidence[0].value, throughput("mxnet", "p4000", 32) / lowest);
}

TEST(Observations, EveryCaseMustHoldUnlessASmallerShareIsNeeded) {
  // Between the two cases' throughputs.
  const double limit = (throughput("mxnet", "p4000", 32) + throughput("tensorflow", "p4000", 16)) / 2;
  const std::string check = "      - {of: [both], metric: throughput, at_least: " + std::to_string(limit);
  EXPECT_EQ(observed(check + "}\n").verdict, Verdict::does_not_hold);
  EXPECT_EQ(observed(check + ", needed: 0.4}\n").verdict, Verdict::holds);
  EXPECT_EQ(observed(check + ", needed: 0.5}\n").verdict, Verdict::does_not_hold);  // half is not more
}

// Ratios are from 0 to 1, and shown in per cent.
TEST(Observations, LimitsOfRatios) {
  const auto result = observed("      - {of: [cnn], metric: gpu_utilization, at_least: 0.5, at_most: 1}\n");
  EXPECT_EQ(result.verdict, Verdict::holds);
  const Observations one = read("      - {of: [cnn], metric: gpu_utilization, at_least: 0.5}\n");
  SpecCache specs = test::source_specs();
  const std::vector<Table> tables = observation_tables(one, observe(one, specs));
  ASSERT_EQ(tables.at(0).rows.size(), 1u);
  const std::vector<Cell>& row = tables[0].rows[0];
  EXPECT_LE(std::get<double>(row[4].value), 1);
  EXPECT_EQ(row[5].text, "50 % and more");
}

// A batch that does not fit gives no evidence. One check that does not hold decides; one without evidence
// leaves the observation undecided.
TEST(Observations, Verdicts) {
  const std::string open = "      - {of: [huge], metric: throughput, at_least: 1}\n";
  const std::string good = "      - {of: [cnn], metric: throughput, at_least: 1}\n";
  const std::string bad = "      - {of: [cnn], metric: throughput, at_most: 1}\n";
  EXPECT_EQ(observed(good).verdict, Verdict::holds);
  EXPECT_EQ(observed(good + bad).verdict, Verdict::does_not_hold);
  EXPECT_EQ(observed(open).verdict, Verdict::not_decidable);
  EXPECT_EQ(observed(good + open).verdict, Verdict::not_decidable);
  EXPECT_EQ(observed(open + bad).verdict, Verdict::does_not_hold);
}

// The paper's twelve. A change of a verdict belongs into CHANGELOG.md and docs/paper.md.
TEST(Observations, OfThePaper) {
  const test::CliResult result = test::run({"observations"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("holds          1, 2, 3, 5, 6, 8, 10, 11\n"
                                    "does_not_hold  4, 7, 9, 12\n"
                                    "not_decidable  none\n"));
  EXPECT_THAT(result.out, HasSubstr("why not: every further environment"));
}

// Checks on time to a target have evidence, each at the case's own network, precision and GPU.
TEST(Observations, OfDawnbenchHaveEvidence) {
  const test::CliResult result = test::run({"observations", "--suite", "dawnbench", "--format", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::set<std::string> numbers;
  for (const auto& row : test::rows_of(result.out)) {
    EXPECT_NE(row.at("verdict"), "not decidable") << row.at("statement");
    EXPECT_FALSE(row.at("value").empty()) << row.at("case");
    numbers.insert(row.at("number"));
  }
  EXPECT_EQ(numbers.size(), 6u);
  EXPECT_THAT(test::run({"observations", "--suite", "dawnbensh"}).err,
              testing::HasSubstr("did you mean 'dawnbench'"));
}

}  // namespace
}  // namespace tbdsim
