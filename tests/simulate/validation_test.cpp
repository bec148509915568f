// The yardstick's arithmetic, by hand: errors, bias, coverage, noise, what counts once, what is told apart.
#include <cmath>
#include <sstream>

#include <gmock/gmock.h>

#include "simulate/prediction/predict.h"
#include "simulate/report/validation_tables.h"
#include "tests/simulate/runs_fixture.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using test::Row;
using test::run_row;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Validation validate(const std::vector<Row>& rows, const std::string& by = "group") {
  std::istringstream in(test::table(rows));
  SpecCache specs = test::source_specs();
  return validate_runs(in, "runs.csv", by, specs, "uncalibrated", [](std::size_t) {});
}

// Predicted images/s of ResNet-50 on MXNet and a TITAN Xp.
double predicted(std::int64_t batch) {
  static SpecCache specs = test::source_specs();
  return predict({.model = "resnet50",
                  .framework = "mxnet",
                  .gpu = "titanxp",
                  .batch = batch,
                  .profile = "uncalibrated"},
                 specs)
      .throughput();
}

// A run at a batch whose measurement lies so that the prediction is `error` too high.
Row off_by(double error, std::int64_t batch, Row changes = {}) {
  std::ostringstream value;
  value.precision(17);
  value << predicted(batch) / (1 + error);
  changes["value"] = value.str();
  changes["batch_per_gpu"] = std::to_string(batch);
  return run_row(changes);
}

// Measured 100 and 400: geometric mean 200. Predicted 300: 50 % too much. [150, 250] holds the 200.
TEST(Configuration, ErrorAgainstTheGeometricMean) {
  Configuration c;
  c.measured = {100, 400};
  c.prediction = {"ok", 300, {150, 250}};
  EXPECT_NEAR(c.error(), 0.5, 1e-12);
  EXPECT_TRUE(c.inside_interval());
  c.prediction.interval = {201, 250};
  EXPECT_FALSE(c.inside_interval());
  c.prediction.interval = {150, 199};
  EXPECT_FALSE(c.inside_interval());
}

// Errors +10 %, -8 %, +30 %, +150 %: sizes 0.1, 0.08, 0.3, 1.5. Mean 1.98 / 4, median 0.2, p90 at
// position 2.7: 0.3 + 0.7 * 1.2 = 1.14, bias 1.82 / 4. The uncalibrated interval is a factor of 1.12 either
// way: the first two are inside.
TEST(Validate, ErrorsOfAGroup) {
  const Validation v = validate({off_by(0.1, 16), off_by(-0.08, 32), off_by(0.3, 64), off_by(1.5, 128)});
  ASSERT_EQ(v.groups.size(), 1u);
  const GroupErrors& e = v.groups[0];
  EXPECT_EQ(e.section, "score");
  EXPECT_EQ(e.group, "cnn");
  EXPECT_EQ(e.rows, 4);
  EXPECT_EQ(e.covered_rows, 4);
  EXPECT_EQ(e.configurations, 4);
  EXPECT_NEAR(e.mean, 0.495, 1e-9);
  EXPECT_NEAR(e.median, 0.2, 1e-9);
  EXPECT_NEAR(e.p90, 1.14, 1e-9);
  EXPECT_NEAR(e.max, 1.5, 1e-9);
  EXPECT_NEAR(e.bias, 0.455, 1e-9);
  EXPECT_NEAR(e.coverage, 0.5, 1e-9);
  EXPECT_EQ(e.noise, 0);  // nothing was measured twice
}

// One configuration measured three times beside one measured once: two configurations of equal weight. The
// first's geometric mean lies where the prediction is right; the second is 20 % off: mean 10 %, not 5 %.
TEST(Validate, ConfigurationCountsOnceHoweverOftenMeasured) {
  const Validation v = validate({off_by(0, 64), off_by(0.02, 64), off_by(1 / 1.02 - 1, 64), off_by(0.2, 32)});
  ASSERT_EQ(v.groups.size(), 1u);
  EXPECT_EQ(v.groups[0].rows, 4);
  EXPECT_EQ(v.groups[0].configurations, 2);
  EXPECT_NEAR(v.groups[0].mean, 0.1, 1e-9);
}

// A table with the column `relative_to` behind its others; one text a row.
Validation validate_relative(const std::vector<Row>& rows, const std::vector<std::string>& relative_to) {
  std::istringstream lines(test::table(rows));
  std::string line;
  std::getline(lines, line);
  std::string table = line + ",relative_to\n";
  for (const std::string& id : relative_to) {
    std::getline(lines, line);
    table += line + "," + id + "\n";
  }
  std::istringstream in(table);
  SpecCache specs = test::source_specs();
  return validate_runs(in, "runs.csv", "group", specs, "uncalibrated", [](std::size_t) {});
}

Row with_id(const char* id, Row row) {
  row["id"] = id;
  return row;
}

// a1 is as fast as predicted, b2 half as fast. Runs that are half as fast as predicted, too, have the
// predicted speed-up over b2 (error 0) and half of that over a1 (error 1).
TEST(Validate, RowsRelativeToAnotherAreJudgedAsSpeedUps) {
  const Row context{{"use", "context"}, {"split", ""}};
  const Validation v =
      validate_relative({with_id("a1", off_by(0, 16, context)), with_id("b2", off_by(1, 16, context)),
                         with_id("c3", off_by(1, 32)), with_id("d4", off_by(1, 64))},
                        {"", "", "b2", "a1"});
  std::vector<double> errors;
  for (const Configuration& c : v.configurations) {
    if (c.section == "score") errors.push_back(c.error());
  }
  EXPECT_THAT(errors, ElementsAre(testing::DoubleNear(0, 1e-9), testing::DoubleNear(1, 1e-9)));
}

// A row below, or none of that id, is no base.
TEST(Validate, TheRowThatOthersAreRelativeToStandsAboveThem) {
  const Validation v =
      validate_relative({with_id("a1", off_by(0, 16)), with_id("b2", off_by(0, 32))}, {"b2", "x9"});
  EXPECT_THAT(v.not_covered, ElementsAre(Pair("relative_to names no predicted row above it", 2)));
}

// ln(value) of the repeats deviates by -0.03, 0, +0.03: standard deviation sqrt(2 * 0.0009 / 2) = 0.03. A
// second configuration by -0.01, +0.01: sqrt(2 * 0.0001 / 1) = 0.014142. Their median (mean of two):
// 0.022071.
TEST(Validate, NoiseIsTheMedianSpreadOfRepeats) {
  const auto repeat = [](double log, std::int64_t batch) { return off_by(std::exp(log) - 1, batch); };
  EXPECT_NEAR(validate({repeat(-0.03, 64), repeat(0, 64), repeat(0.03, 64)}).groups[0].noise, 0.03, 1e-9);
  EXPECT_NEAR(validate({repeat(-0.03, 64), repeat(0, 64), repeat(0.03, 64), repeat(0.01, 32),
                        repeat(-0.01, 32), repeat(0, 16)})
                  .groups[0]
                  .noise,
              (0.03 + 0.01 * std::sqrt(2.0)) / 2, 1e-9);
}

// A configuration is identified by version, batch and so on, not by id or note; another version is another
// configuration.
TEST(Validate, IdentityOfAConfiguration) {
  EXPECT_EQ(validate({off_by(0, 64, {{"id", "1"}}), off_by(0, 64, {{"id", "2"}})}).groups[0].configurations,
            1);
  for (const Row& change : {Row{{"version", "1.0"}}, Row{{"gpu", "p4000"}}, Row{{"framework", "cntk"}},
                            Row{{"variant", "v1"}}, Row{{"metric", "iteration_time"}, {"unit", "s"}}}) {
    EXPECT_EQ(validate({off_by(0, 64), off_by(0, 64, change)}).groups[0].configurations, 2)
        << change.begin()->first;
  }
}

std::vector<std::string> sections(const Validation& v) {
  std::vector<std::string> names;
  for (const GroupErrors& e : v.groups) names.push_back(e.section + "/" + e.group);
  return names;
}

TEST(Validate, SectionsAreToldApart) {
  const Validation v =
      validate({off_by(0.1, 64, {{"use", "context"}, {"split", ""}}),
                off_by(0.2, 64, {{"split", "fit"}, {"group", "b"}}), off_by(0.3, 64, {{"group", "b"}}),
                off_by(0.4, 64, {{"group", "a"}}), off_by(0.5, 64, {{"use", "context"}, {"split", "fit"}})});
  EXPECT_THAT(sections(v), ElementsAre("score/a", "score/b", "fit/b", "context/cnn"));
  EXPECT_EQ(v.groups[3].rows, 2);  // context rows are context whatever their split
  EXPECT_NEAR(v.groups[2].mean, 0.2, 1e-9);
}

TEST(Validate, GroupsByTheColumnAskedFor) {
  EXPECT_THAT(sections(validate({off_by(0, 64), off_by(0, 64, {{"gpu", "p4000"}})}, "gpu")),
              ElementsAre("score/p4000", "score/titanxp"));
}

// Rows without a positive number are counted out, rows without a prediction count as rows of their group.
TEST(Validate, RowsNotCovered) {
  const Validation v =
      validate({run_row({{"value", ""}}), run_row({{"value", "0"}}), run_row({{"value", "-3"}}),
                run_row({{"value", "nan"}}), run_row({{"value", "1e999"}}),
                run_row({{"gpus", "8"}, {"machines", "3"}}), off_by(0.1, 64)});
  EXPECT_THAT(v.not_covered, ElementsAre(Pair("8 gpus on 3 machines: not the same number on each", 1),
                                         Pair("value is not a positive number", 5)));
  ASSERT_EQ(v.groups.size(), 1u);
  EXPECT_EQ(v.groups[0].rows, 2);
  EXPECT_EQ(v.groups[0].covered_rows, 1);
  EXPECT_NEAR(v.groups[0].mean, 0.1, 1e-9);
}

TEST(Validate, NothingToJudge) {
  EXPECT_TRUE(validate({}).groups.empty());
  const Validation v = validate({run_row({{"gpus", "2"}, {"machines", "3"}})});
  EXPECT_EQ(v.groups[0].configurations, 0);
  EXPECT_EQ(v.groups[0].mean, 0);
}

TEST(Validate, ProgressIsReportedForEveryRow) {
  std::istringstream in(test::table({run_row(), run_row(), run_row({{"value", ""}})}));
  SpecCache specs = test::source_specs();
  std::vector<std::size_t> reported;
  (void)validate_runs(in, "runs.csv", "group", specs, "uncalibrated",
                      [&](std::size_t rows) { reported.push_back(rows); });
  EXPECT_THAT(reported, ElementsAre(1, 2, 3));
}

// A group of one configuration, 10 % off, and a group of three, all 40 % off: 25 % over groups, 32.5 % over
// rows.
TEST(ValidationSheet, SectionsMeanIsOverGroups) {
  const Validation v = validate({off_by(0.1, 64, {{"group", "a"}}), off_by(0.4, 16, {{"group", "b"}}),
                                 off_by(0.4, 32, {{"group", "b"}}), off_by(0.4, 64, {{"group", "b"}}),
                                 run_row({{"group", "uncovered"}, {"gpus", "2"}, {"machines", "3"}})});
  SpecCache specs = test::source_specs();
  const Table table = validation_table(v, "group", specs.profile("uncalibrated").get());
  ASSERT_EQ(table.totals.size(), 2u);  // and the profile
  EXPECT_EQ(table.totals[0].first, "score_mean_over_groups");
  EXPECT_NEAR(std::get<double>(table.totals[0].second.value), 0.25, 1e-9);
  EXPECT_THAT(table.totals[0].second.text, HasSubstr("over 2 groups, 4 configurations"));
  EXPECT_EQ(table.rows.size(), 3u);
  EXPECT_THAT(table.preface[0], HasSubstr("fitted to no measurement"));
  EXPECT_THAT(table.notes, testing::Contains(HasSubstr("2 gpus on 3 machines")));
}

// Without --profile each GPU has its own, so that none is named.
TEST(ValidationSheet, OfEachGpusOwnProfile) {
  const Table table = validation_table(validate({off_by(0.1, 64)}), "group", nullptr);
  EXPECT_THAT(table.preface[0], HasSubstr("the profile of each GPU"));
  for (const auto& [name, cell] : table.totals) EXPECT_NE(name, "profile");
}

// A row of another use or split is a slip of the pen and must not be judged silently.
TEST(Validate, MisspeltUseAndSplitAreErrors) {
  EXPECT_THAT(
      [] {
        (void)validate({off_by(0.1, 64, {{"split", "fti"}})});
      },
      testing::ThrowsMessage<SpecError>(HasSubstr("split 'fti' is unknown; expected fit or score")));
  EXPECT_THAT(
      [] {
        (void)validate({off_by(0.1, 64, {{"use", ""}})});
      },
      testing::ThrowsMessage<SpecError>(HasSubstr("use '' is unknown; expected time, memory or context")));
}

}  // namespace
}  // namespace tbdsim
