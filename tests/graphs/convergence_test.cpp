#include "graphs/convergence.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "graphs/critical_batch.h"
#include "hwspecs/base/catalog.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

ConvergencePoint point(double batch, double epochs, int runs = 1) {
  ConvergencePoint made;
  made.batch = batch;
  made.epochs = epochs;
  made.runs = runs;
  return made;
}

// E(B) = 30 * (1 + (B / 8000)^a).
std::vector<ConvergencePoint> points_of_law(double exponent) {
  std::vector<ConvergencePoint> points;
  for (const double batch : {500.0, 2000.0, 8000.0, 32000.0})
    points.push_back(point(batch, 30 * (1 + std::pow(batch / 8000, exponent))));
  return points;
}

TEST(ConvergenceLaw, FindsTheLawItsPointsAreOf) {
  const ConvergenceLaw law = fit_convergence_law(points_of_law(1));
  EXPECT_NEAR(law.minimum, 30, 0.3);
  EXPECT_NEAR(law.critical_batch, 8000, 120);
  EXPECT_NEAR(law.exponent, 1, 0.01);
}

// An exponent of 1.5 costs (0.05 / 0.3)^2 * 0.5^2 = 0.0069, as much as errors of 4 % at four batches. It is
// drawn towards 1 by less than that is worth: until the errors are about half as large.
TEST(ConvergenceLaw, DrawsTheExponentTowardsOne) {
  for (const double exponent : {0.8, 1.5}) {
    const std::vector<ConvergencePoint> points = points_of_law(exponent);
    const ConvergenceLaw law = fit_convergence_law(points);
    EXPECT_LT(std::abs(law.exponent - 1), std::abs(exponent - 1) - 0.02) << exponent;
    for (const ConvergencePoint& p : points)
      EXPECT_NEAR(law.epochs_at(p.batch) / p.epochs, 1, 0.025) << p.batch;
  }
}

// Through two points there is a law of every exponent: 10 * (1 + B / 100).
TEST(ConvergenceLaw, TwoPointsHaveAnExponentOfOne) {
  const ConvergenceLaw law = fit_convergence_law(std::vector{point(100, 20), point(300, 40)});
  EXPECT_NEAR(law.exponent, 1, 0.01);
  EXPECT_NEAR(law.minimum, 10, 0.2);
  EXPECT_NEAR(law.critical_batch, 100, 3);
}

// Fits look from 0.1 times the smallest to 1,000 times the largest batch; points with equal epochs end at the
// larger limit.
TEST(ConvergenceLaw, ACriticalBatchAtALimitIsNotTold) {
  const auto tells = [](double critical, double smallest = 100, double largest = 1000) {
    return tells_critical_batch({.minimum = 1, .critical_batch = critical}, smallest, largest);
  };
  EXPECT_TRUE(tells(5000));
  EXPECT_FALSE(tells(1e6));
  EXPECT_FALSE(tells(1.0003e6));  // as a written law rounds it
  EXPECT_FALSE(tells(10));
  EXPECT_TRUE(tells(10.2));
  EXPECT_FALSE(tells(5000, 100, 100));
  const ConvergenceLaw flat = fit_convergence_law(std::vector{point(100, 7), point(1000, 7)});
  EXPECT_FALSE(tells(flat.critical_batch));
}

// 30 * (1 + 1) at the critical batch; 30 * (1 + 4) at four times that.
TEST(ConvergenceLaw, DoublesAtTheCriticalBatch) {
  const ConvergenceLaw law{.minimum = 30, .critical_batch = 8000, .exponent = 1};
  EXPECT_DOUBLE_EQ(law.epochs_at(8000), 60);
  EXPECT_DOUBLE_EQ(law.epochs_at(32000), 150);
}

TEST(ConvergenceLaw, EpochsNeverFallWithTheBatch) {
  const std::vector<ConvergencePoint> falling = {point(100, 9), point(1000, 7)};
  const ConvergenceLaw law = fit_convergence_law(falling);
  EXPECT_LE(law.epochs_at(100), law.epochs_at(1000));
}

// Points at one batch count by their runs: (3 * 10 + 1 * 14) / 4 = 11.
TEST(ConvergenceLaw, PoolsPointsOfOneBatch) {
  const std::vector<ConvergencePoint> apart = {point(100, 10, 3), point(100, 14), point(1000, 20)};
  const std::vector<ConvergencePoint> pooled = {point(100, 11), point(1000, 20)};
  EXPECT_DOUBLE_EQ(fit_convergence_law(apart).minimum, fit_convergence_law(pooled).minimum);
}

TEST(ConvergenceLaw, LeavesABatchOutAndSaysHowFarOff) {
  const std::vector<LeftOutBatch> left_out = left_out_batches(points_of_law(1), 1);
  ASSERT_EQ(left_out.size(), 4u);
  EXPECT_NEAR(left_out[1].ratio, 1, 0.02);
  EXPECT_DOUBLE_EQ(left_out[0].outside, 4);  // 500 beside 2000
  EXPECT_DOUBLE_EQ(left_out[2].outside, 1);
  EXPECT_TRUE(left_out_batches(std::vector{point(1, 1), point(2, 1)}, 1).empty());
}

// (3 * 10 + 1 * 14) / 4 = 11 epochs, and a thousandth more at that batch, which is a thousandth of the
// critical one.
TEST(ConvergenceLaw, OneBatchGivesAFlatLaw) {
  const std::vector<ConvergencePoint> points = {point(100, 10, 3), point(100, 14)};
  const ConvergenceLaw law = fit_convergence_law(points);
  EXPECT_DOUBLE_EQ(law.minimum, 11);
  EXPECT_NEAR(law.epochs_at(100), 11.011, 1e-9);
  EXPECT_NEAR(law.epochs_at(1000), 11.11, 1e-9);
}

// A law of 60 epochs at 8000, where eight runs took 66 with a spread of 0.08. The variance is 0.05^2 + 0.08^2
// / 8
// + (3.3 / 66)^2 / 12 = 0.0025 + 0.0008 + 0.000208, its weight 285.0; that of no difference is 1 / 0.08^2 =
// 156.25: ln(66 / 60) * 285.0 / 441.3 = 0.0616.
TEST(ConvergenceLaw, EpochsAreDrawnTowardsMeasuredOnes) {
  const ConvergenceLaw law{.minimum = 30, .critical_batch = 8000, .exponent = 1};
  ConvergencePoint measured = point(8000, 66, 8);
  measured.spread = 0.08;
  const std::vector<ConvergencePoint> points = {measured};
  EXPECT_NEAR(epochs_near(law, points, 3.3, 8000), 60 * std::exp(0.0616), 0.01);
  // At a batch e^0.3 times as large the weight is exp(-1/2) of that.
  const double next = 8000 * std::exp(0.3), weight = 285.0 * std::exp(-0.5);
  EXPECT_NEAR(epochs_near(law, points, 3.3, next) / law.epochs_at(next),
              std::exp(std::log(1.1) * weight / (weight + 156.25)), 1e-4);
  EXPECT_NEAR(epochs_near(law, points, 3.3, 80000), law.epochs_at(80000), 1e-6);
}

constexpr const char* kFile =
    "title: Toy to 90 %\nmodel: toy\ntarget: 90 % top-1\nalso_called: [ninety]\noptimizer: sgd\nepoch: 1000\n"
    "startup: 10 s\nevaluation: {every: 2, samples: 100, exact: true}\n"
    "points:\n  - {batch: 10, epochs: 4, spread: 0.1, runs: 3}\n  - {batch: 100, samples: 8000, spread: 0.2, "
    "runs: 1}\n"
    "law: {minimum: 4, critical_batch: 100, exponent: 1, spread: 0.03}\n"
    "sources: {epoch: t, startup: t, evaluation: t, points: t, law: t}\n";

TEST(Convergence, ReadsAFile) {
  const test::TempDir dir;
  const Convergence to = read_convergence(dir.write("toy_90.yaml", kFile));
  EXPECT_EQ(to.points[1].epochs, 8);  // 8000 samples of 1000
  EXPECT_TRUE(to.is_called("toy_90") && to.is_called("90 % TOP-1") && to.is_called("Ninety"));
  EXPECT_FALSE(to.is_called("91 % top-1"));
}

// 4 * 1.4 = 5.6 epochs are three evaluations, after 6. Of one run: sqrt((3 * 0.01 + 1 * 0.04) / 4) = 0.132.
TEST(Convergence, EpochsAreMultiplesOfTheEvaluationInterval) {
  const test::TempDir dir;
  const Convergence to = read_convergence(dir.write("toy_90.yaml", kFile));
  const EpochsToTarget at = epochs_to_target(to, 40);
  EXPECT_EQ(at.from, EpochsFrom::between);
  EXPECT_DOUBLE_EQ(at.epochs, 6);
  EXPECT_NEAR(at.run_spread, std::sqrt(0.0175), 1e-12);
  EXPECT_DOUBLE_EQ(at.law_spread, 0.03);
}

// Four times the largest batch: 0.21 * ln 4 = 0.291 beside the law's own.
TEST(Convergence, BeyondMeasuredBatchesTheIntervalWidens) {
  const test::TempDir dir;
  const Convergence to = read_convergence(dir.write("toy_90.yaml", kFile));
  const EpochsToTarget beyond = epochs_to_target(to, 400);
  EXPECT_EQ(beyond.from, EpochsFrom::beyond);
  EXPECT_NEAR(beyond.law_spread, std::hypot(0.03, 0.29112), 1e-5);
  EXPECT_GT(epochs_to_target(to, 4000).law_spread, beyond.law_spread);
  EXPECT_EQ(epochs_to_target(to, 5).from, EpochsFrom::below);
}

// First after 3 epochs, then every 2: 2 epochs end at an evaluation, 7 have those after 3, 5 and 7, 7.5 one
// more.
TEST(Convergence, EvaluationsBeginLate) {
  EvaluationSchedule schedule;
  schedule.first = 3;
  schedule.every = 2;
  EXPECT_EQ(schedule.within(2), 1);
  EXPECT_EQ(schedule.within(7), 3);
  EXPECT_EQ(schedule.within(7.5), 4);
}

constexpr const char* kGrowing =
    "phases:\n  - {epochs: 3, sizes: {image_size: 128}, batch: 2}\n  - {epochs: 1}\n"
    "curve: [[0.5, 0.4], [1, 0.9]]\n"
    "measured:\n  - {title: two, gpu: t4, gpus: 2, points: [[0.1, 0.3], [2, 0.91]]}\n"
    "between: 0.05\n";

std::string growing() {
  std::string text = kFile;
  text.insert(text.find("sources:"), kGrowing);
  text.insert(text.find("law: t"), "between: t, phases: t, curve: t, measured: t, ");
  return text;
}

TEST(Convergence, ReadsPhasesAndCurves) {
  const test::TempDir dir;
  const Convergence to = read_convergence(dir.write("toy_90.yaml", growing()));
  ASSERT_EQ(to.phases.size(), 2u);
  EXPECT_DOUBLE_EQ(to.phases[0].share, 0.75);
  EXPECT_DOUBLE_EQ(to.phases[0].batch, 2);
  EXPECT_EQ(to.phases[0].sizes.at("image_size"), 128);
  EXPECT_DOUBLE_EQ(to.curve[1].quality, 0.9);
  EXPECT_EQ(to.measured.at(0).gpus, 2);
  EXPECT_EQ(read_convergence(dir.write("plain.yaml", kFile)).phases.size(), 1u);
}

// sqrt(0.0175 / 4 + 0.03^2 + 0.05^2): the luck of four runs is half of that of one.
TEST(Convergence, TheMeanOfRunsVariesLess) {
  const test::TempDir dir;
  const EpochsToTarget at = epochs_to_target(read_convergence(dir.write("toy_90.yaml", growing())), 40);
  EXPECT_NEAR(at.spread(4), std::sqrt(0.0175 / 4 + 0.0009 + 0.0025), 1e-12);
  EXPECT_GT(at.spread(), at.spread(4));
}

std::string refusal(std::string text, const std::string& what, const std::string& instead) {
  const test::TempDir dir;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  text.replace(at, what.size(), instead);
  return test::message_of<SpecError>([&] { (void)read_convergence(dir.write("bad.yaml", text)); });
}

TEST(Convergence, RefusesWhatMakesNoSense) {
  EXPECT_THAT(refusal(kFile, "batch: 100,", "batch: 9,"),
              HasSubstr("points[1].batch: is less than the one before"));
  EXPECT_THAT(refusal(growing(), "[1, 0.9]", "[0.5, 0.9]"),
              HasSubstr("curve[1][0]: is no more than the one before"));
  EXPECT_THAT(refusal(growing(), "[1, 0.9]", "[1]"), HasSubstr("curve[1]: is no pair"));
  EXPECT_THAT(refusal(growing(), "{epochs: 1}", "{epoch: 1}"), HasSubstr("phases[1]"));
  EXPECT_THAT(refusal(kFile, "exponent: 1,", "exponent: 3,"), HasSubstr("law.exponent"));
  EXPECT_THAT(refusal(kFile, "epochs: 4", "epoch: 4"), HasSubstr("is 'epoch' meant to be it"));
  EXPECT_THAT(refusal(kFile, "points: t,", ""), HasSubstr("no source for 'points'"));
  EXPECT_THAT(refusal(kFile, "startup: 10 s", "startup: 10"),
              HasSubstr("bad.yaml:7:10: startup: '10' has no unit"));
}

// Without points there is no law: epochs are those that a user gives, or an error says how to give them.
TEST(Convergence, EpochsMayBeGiven) {
  const test::TempDir dir;
  std::string text = kFile;
  const std::size_t points = text.find("points:"), sources = text.find("sources:");
  text.replace(points, sources - points, "");
  text.replace(text.find(", points: t, law: t"), 19, "");
  Convergence to = read_convergence(dir.write("toy_90.yaml", text));
  EXPECT_FALSE(to.knows_epochs());
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)epochs_to_target(to, 40); }),
              HasSubstr("no run of toy to 90 % top-1 is known, and so no epochs; expected --epochs"));
  to.given_epochs = 5.5;
  const EpochsToTarget given = epochs_to_target(to, 40);
  EXPECT_EQ(given.epochs, 5.5);  // as given, though evaluations are every two epochs
  EXPECT_EQ(given.from, EpochsFrom::given);
  EXPECT_EQ(given.spread(), 0);
  EXPECT_EQ(to.largest_batch(), 1000);
}

// The constants of every file are those of its points, but for rounding; models have one usual target.
TEST(Convergence, LawsOfTheCatalogueAreThoseOfTheirPoints) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  std::map<std::string, int> usual;
  for (const std::string& name : catalog.names(Kind::target)) {
    const Convergence to = read_convergence(catalog.find(Kind::target, name));
    EXPECT_NO_THROW((void)catalog.find(Kind::model, to.model)) << name;
    usual[to.model] += to.usual;
    if (!to.is_measured()) continue;
    const ConvergenceLaw law = fit_convergence_law(to.points);
    for (const ConvergencePoint& point : to.points)
      EXPECT_NEAR(to.law.epochs_at(point.batch) / law.epochs_at(point.batch), 1, 2e-3)
          << name << " " << point.batch;
  }
  EXPECT_GE(usual.size(), 5u);
  for (const auto& [model, count] : usual) EXPECT_EQ(count, 1) << model;
}

}  // namespace
}  // namespace tbdsim
