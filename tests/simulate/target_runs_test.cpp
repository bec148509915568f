// Time, cost and energy to a target: by hand on the toy world, and on the command line.
#include "simulate/analysis/target_runs.h"

#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "simulate/prediction/metrics.h"
#include "simulate/prediction/predict.h"
#include "simulate/report/cells.h"
#include "simulate/report/html/target_sections.h"
#include "simulate/report/target_tables.h"
#include "tests/hwspecs/message_of.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kTarget =
    "title: Toy to 90 %\nmodel: model\ntarget: 90 %\noptimizer: sgd\nepoch: 5000\nstartup: 10 s\n"
    "evaluation: {every: 2, samples: 100, overhead: 1 s}\n"
    "points:\n  - {batch: 10, epochs: 5.333333333333333, spread: 0.1, runs: 1}\n  - {batch: 30, epochs: 8, "
    "spread: 0.1, "
    "runs: 1}\n"
    "law: {minimum: 4, critical_batch: 30, exponent: 1, spread: 0}\n"
    "sources: {epoch: t, startup: t, evaluation: t, points: t, law: t}\n";

class TargetRuns : public testing::Test {
 protected:
  [[nodiscard]] Scenario scenario(std::int64_t batch) const {
    Scenario scenario = world_.scenario(batch);
    scenario.target = target_;
    return scenario;
  }

  test::ToyWorld world_;
  test::TempDir dir_;
  std::string target_ = dir_.write("ninety.yaml", kTarget).string();
  SpecCache specs_ = test::source_specs();
};

// 4 * (1 + 10 / 30) = 5.333 epochs of 500 iterations are 2667 of 4.09 us; three evaluations of 1 s and ten
// forward passes of 0.73 + 0.49 + 0.55 = 1.77 us; one checkpoint of 96 B at 1 GB/s.
TEST_F(TargetRuns, TimeAndCostByHand) {
  const Prediction p = predict(scenario(10), specs_);
  const TimeToTarget t = time_to_target(p).value();
  EXPECT_DOUBLE_EQ(t.epochs.epochs, 16.0 / 3);
  EXPECT_NEAR(t.training.si(), 2667 * 4.09e-6, 1e-9);
  EXPECT_DOUBLE_EQ(t.evaluations, 3);
  EXPECT_NEAR(t.evaluation.si(), 3 * (1 + 10 * 1.77e-6), 1e-9);
  EXPECT_NEAR(t.checkpointing.si(), 96e-9, 1e-15);
  EXPECT_NEAR(t.total().si(), 10 + 2667 * 4.09e-6 + 3 * (1 + 17.7e-6) + 96e-9, 1e-9);
  EXPECT_NEAR(t.cost->si(), 0.001 * t.total().si(), 1e-12);  // 3.6 USD an hour
  EXPECT_NEAR(t.epochs_factor(), std::exp(kEightyPercent * 0.1), 1e-12);
  EXPECT_GT(t.factor(), t.epochs_factor());
  EXPECT_GT(t.factor(), t.hardware_factor());
}

// Power of a board of 1 W: 0.95 while arithmetic limits (2.01 of 4.09 us), 0.65 while memory does (0.61), 0.5
// in small kernels (1.47), 0.2 during start-up and the checkpoint. The host adds 0.4 W, cooling 15 %.
TEST_F(TargetRuns, EnergyByHand) {
  const TimeToTarget t = time_to_target(predict(scenario(10), specs_)).value();
  const double training = (0.95 * 2.01 + 0.65 * 0.61 + 0.5 * 1.47) / 4.09;
  const double busy = (t.training + t.evaluation).si(), waiting = (t.startup + t.checkpointing).si();
  EXPECT_NEAR(t.energy.board.si(), training * busy + 0.2 * waiting, 1e-9);
  EXPECT_NEAR(t.energy.wall.si(), 1.15 * ((training + 0.4) * busy + (0.2 + 0.4) * waiting), 1e-9);
}

// A hundred samples of 20 ms on one GPU are 2 s more in each of three evaluations.
TEST_F(TargetRuns, EvaluationsMayTakeTimeForEachSample) {
  std::string text = kTarget;
  text.replace(text.find("overhead: 1 s"), 13, "overhead: 1 s, per_sample: 20 ms");
  Scenario slow = scenario(10);
  slow.target = dir_.write("slow.yaml", text).string();
  const TimeToTarget t = time_to_target(predict(slow, specs_)).value();
  EXPECT_NEAR(t.evaluation.si(), 3 * (3 + 10 * 1.77e-6), 1e-9);
}

TEST_F(TargetRuns, RulesMayLeavePartsOut) {
  const TimeToTarget t =
      time_to_target(predict(scenario(10), specs_), {.startup = false, .checkpoints = false}).value();
  EXPECT_NEAR(t.total().si(), 2667 * 4.09e-6 + 3 * (1 + 17.7e-6), 1e-9);
}

TEST_F(TargetRuns, MetricsHaveValuesWithATargetOnly) {
  const Prediction with = predict(scenario(10), specs_), without = predict(world_.scenario(10), specs_);
  for (const char* name : {"epochs_to_target", "time_to_target", "cost_to_target", "energy_to_target"}) {
    const Metric& metric = find_metric(name);
    EXPECT_TRUE(metric.value(with).has_value()) << name;
    EXPECT_FALSE(metric.value(without).has_value()) << name;
    EXPECT_FALSE(more_is_better(metric)) << name;
  }
}

// A larger batch takes fewer iterations until epochs grow as fast: the best of the toy world is neither the
// smallest nor the largest that fits.
TEST_F(TargetRuns, TheBestBatchIsTheFastest) {
  const Cluster one[] = {Cluster{}};
  const TargetRun best = std::move(target_runs(scenario(1), {}, one, specs_).front());
  for (const std::int64_t batch : {1, 2, 8, 64, 512, 4096}) {
    const TargetRun other =
        std::move(target_runs(scenario(1), {.each = batch, .global = {}}, one, specs_).front());
    EXPECT_LE(best.time.total(), other.time.total()) << batch;
  }
}

// A recipe that was run with 30 samples at most is not trusted with more, though a flat law would be fastest
// there.
TEST_F(TargetRuns, TheBestBatchIsNotBeyondThoseMeasured) {
  std::string text = kTarget;
  for (const auto& [from, to] :
       {std::pair{"epochs: 8", "epochs: 5.3333"},
        std::pair{"minimum: 4, critical_batch: 30", "minimum: 5.3333, critical_batch: 1e9"}})
    text.replace(text.find(from), std::string(from).size(), to);
  Scenario flat = scenario(1);
  flat.target = dir_.write("flat.yaml", text).string();
  const Cluster one[] = {Cluster{}};
  const TargetRun best = std::move(target_runs(flat, {}, one, specs_).front());
  EXPECT_GT(best.time.global_batch, 10);
  EXPECT_LE(best.time.global_batch, 30);
}

TEST_F(TargetRuns, ABatchAboveTheDataSetIsRefused) {
  const Cluster one[] = {Cluster{}};
  EXPECT_THROW((void)target_runs(scenario(1), {.each = 5001, .global = {}}, one, specs_), UsageError);
  EXPECT_FALSE(time_to_target(predict(scenario(5001), specs_)).has_value());
}

// 80 samples of an update on two GPUs that add up four batches each: 10 on a GPU at a time.
TEST_F(TargetRuns, AGlobalBatchIsSharedByGpusAndAccumulatedBatches) {
  Scenario accumulating = scenario(1);
  accumulating.training.accumulate = 4;
  Cluster two;
  two.gpus = 2;
  two.network = "pcie3";
  const Cluster clusters[] = {two};
  const TargetRun run =
      std::move(target_runs(accumulating, {.each = {}, .global = 80}, clusters, specs_).front());
  EXPECT_EQ(run.prediction.batch(), 10);
  EXPECT_DOUBLE_EQ(run.time.global_batch, 80);
  EXPECT_DOUBLE_EQ(global_batch(run.prediction), 80);
  EXPECT_THAT(
      test::message_of<UsageError>(
          [&] { (void)target_runs(accumulating, {.each = {}, .global = 84}, clusters, specs_); }),
      HasSubstr("84 on 2 GPUs of 4 batches each: not the same on each; expected a multiple, as 80 or 88"));
}

// Two of three epochs on twice the batch: each phase has its own iteration time, and the curve is laid over
// both.
TEST_F(TargetRuns, PhasesHaveRatesOfTheirOwn) {
  std::string text = kTarget;
  text.insert(text.find("sources:"), "phases: [{epochs: 2, batch: 2}, {epochs: 1}]\n");
  text.insert(text.find("law: t"), "phases: t, ");
  Scenario phased = scenario(1);
  phased.target = dir_.write("phased.yaml", text).string();
  const Cluster one[] = {Cluster{}};
  const TargetRun run = std::move(target_runs(phased, {.each = 10, .global = {}}, one, specs_).front());
  const Prediction ten = predict(world_.scenario(10), specs_), twenty = predict(world_.scenario(20), specs_);
  // 16 / 3 epochs of 5000 samples: two thirds in iterations of 20, one in iterations of 10.
  const double first = std::ceil(16.0 / 3 * 5000 * 2 / 3 / 20) * twenty.iteration_time().si();
  const double second = std::ceil(16.0 / 3 * 5000 / 3 / 10) * ten.iteration_time().si();
  EXPECT_NEAR(run.time.phases.at(0).si(), first, 1e-9);
  EXPECT_NEAR(run.time.training.si(), first + second, 1e-9);
  EXPECT_DOUBLE_EQ(run.time.global_batch, 10);
  const double half = run.time.startup.si() + 0.75 * first + 0.5 * run.time.evaluation.si();
  EXPECT_NEAR(hours_at(run.time, *run.prediction.convergence, 0.5), half / 3600, 1e-9);
  EXPECT_FALSE(time_to_target(run.prediction).has_value());  // one prediction does not have all rates
}

TEST_F(TargetRuns, MoreGpusStopPayingWhereAStepGainsLessThanHalf) {
  const Prediction p = predict(scenario(10), specs_);
  const auto run = [&](int gpus, double seconds) {
    TargetRun made;
    made.prediction = p;
    made.prediction.scenario.cluster.gpus = gpus;
    made.time.training = Seconds(seconds);
    return made;
  };
  // Twice the GPUs could halve the time; 100 / 60 is 67 % more, 60 / 45 33 %.
  const std::vector<TargetRun> runs = {run(1, 100), run(2, 60), run(4, 45), run(8, 44)};
  EXPECT_EQ(last_that_pays(runs), 1u);
  EXPECT_EQ(last_that_pays(std::span(runs).first(2)), std::nullopt);
}

TEST_F(TargetRuns, ThePageShowsThemOverGpusAndBatches) {
  const Scenario with[] = {scenario(10)}, without[] = {world_.scenario(10)};
  const Section section = target_section(report_data(with, {}, specs_));
  ASSERT_EQ(section.views.size(), 1u);
  std::vector<std::string> titles;
  for (const Chart& chart : section.views[0].charts) titles.push_back(chart.title);
  EXPECT_THAT(titles, testing::ElementsAre("Time", "Cost", "Energy", "Time over the batch, on eight GPUs"));
  const Series& time = section.views[0].charts[0].series.at(0);
  EXPECT_THAT(time.x, testing::IsSupersetOf({1.0, 2.0, 4.0, 8.0}));
  EXPECT_LT(time.low[0], time.y[0]);
  EXPECT_GT(time.high[0], time.y[0]);
  EXPECT_TRUE(target_section(report_data(without, {}, specs_)).views.empty());
}

TEST_F(TargetRuns, ThePageLaysMeasuredCurvesBesidePredictedOnes) {
  std::string text = kTarget;
  text.insert(text.find("sources:"),
              "curve: [[0.5, 0.4], [1, 0.9]]\n"
              "measured: [{title: two of them, gpu: gpu, gpus: 2, points: [[0.1, 0.3]]},\n"
              "           {title: another, gpu: t4, gpus: 2, points: [[0.1, 0.3]]}]\n");
  text.insert(text.find("law: t"), "curve: t, measured: t, ");
  Scenario curved = scenario(10);
  curved.target = dir_.write("curved.yaml", text).string();
  const ReportData data = report_data(std::span(&curved, 1), {}, specs_);
  const Section section = target_section(data);
  const Chart& chart = section.views.at(0).charts.back();
  ASSERT_EQ(chart.title, "Quality on the way");
  ASSERT_EQ(chart.series.size(), 2u);  // predicted on two GPUs, and the one run on this GPU
  EXPECT_THAT(chart.series[0].y, testing::ElementsAre(0.4, 0.9));
  EXPECT_EQ(chart.series[1].name, "measured: two of them");
}

TEST(Durations, AreInTheUnitThatReadsBest) {
  EXPECT_EQ(duration_text(Seconds(48)), "48 s");
  EXPECT_EQ(duration_text(Seconds(1700)), "28.3 min");
  EXPECT_EQ(duration_text(Seconds(18720)), "5.2 h");
  EXPECT_EQ(duration_text(Seconds(3.1 * 86400)), "3.1 days");
  EXPECT_EQ(duration_text(Seconds(1.4 * 365.25 * 86400)), "1.4 years");
  EXPECT_EQ(duration_text(Seconds(119456), 4), "33.18 h");  // of 3600 s
  EXPECT_EQ(metric_text(119456, "s"), "33.18 h");
  EXPECT_EQ(metric_text(0.5, "s"), "500 ms");
}

const std::vector<std::string> kTta = {"tta",     "resnet50", "--framework",
                                       "pytorch", "--gpu",    "v100_sxm2_16gb"};

std::vector<std::string> with(std::vector<std::string> more) {
  std::vector<std::string> all = kTta;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Tta, SaysWhereMoreGpusStopPaying) {
  const test::CliResult result = test::run(with({"--batch", "64", "--machine", "dgx1_v100", "--gpus", "8",
                                                 "--machines", "1,4,16,64,256", "--precision", "amp"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("ResNet-50 v1.5 on ImageNet to 75.9 % top-1"));
  EXPECT_THAT(result.out, HasSubstr("more GPUs stop paying at"));
}

TEST(Tta, ATargetNobodyMeasuredListsThoseThereAre) {
  EXPECT_THAT(test::run(with({"--target", "0.8 top-1"})).err,
              HasSubstr("nobody measured resnet50 to target '0.8 top-1'"));
  EXPECT_THAT(test::run(with({"--target", "0.76 top-1"})).err, HasSubstr("resnet50_759 (0.759 top-1)"));
  EXPECT_THAT(test::run({"tta", "alexnet", "--framework", "pytorch", "--gpu", "t4"}).err,
              HasSubstr("no target was measured for alexnet"));
}

TEST(Tta, BatchesThatMakeNoSense) {
  EXPECT_THAT(test::run(with({"--batch", "64", "--global-batch", "512"})).err, HasSubstr("both given"));
  EXPECT_THAT(test::run(with({"--global-batch", "100", "--gpus", "8"})).err,
              HasSubstr("100 on 8 GPUs: not the same on each; expected a multiple, as 96 or 104"));
  EXPECT_THAT(test::run(with({"--global-batch", "3", "--gpus", "8"})).err, HasSubstr("as 8 or 16"));
  EXPECT_THAT(test::run(with({"--batch", "2000000"})).err,
              HasSubstr("more than the 1281167 samples of an epoch"));
  EXPECT_THAT(test::run(with({"--batch", "0"})).err, HasSubstr("--batch: '0' is out of range"));
  EXPECT_THAT(test::run(with({"--batch", "bset"})).err,
              HasSubstr("'bset' is neither a whole number nor best"));
}

// Nobody rents an RTX 3090 here: null, and a note. A GTX 970 takes years for BERT.
TEST(Tta, UnknownRentsAndTimesBeyondAYear) {
  const test::CliResult dear =
      test::run({"tta", "resnet50", "--framework", "pytorch", "--gpu", "rtx3090", "--batch", "32"});
  EXPECT_THAT(dear.out, HasSubstr("no rent is known of NVIDIA GeForce RTX 3090"));
  EXPECT_THAT(test::run({"tta", "resnet50", "--framework", "pytorch", "--gpu", "rtx3090", "--batch", "32",
                         "--format", "json"})
                  .out,
              HasSubstr("\"cost_to_target\": null"));
  EXPECT_THAT(test::run({"tta", "resnet50", "--framework", "pytorch", "--gpu", "gtx970", "--batch", "1",
                         "--target", "resnet50_adascale", "--input-time", "10 s"})
                  .out,
              HasSubstr("beyond a year"));
}

// A cluster's layouts have times to a target, too.
TEST(Tta, PlansReachTargets) {
  std::vector<std::string> plan = {"plan",      "llama2_70b", "--gpu",          "h100_sxm", "--gpus", "64",
                                   "--seq-len", "8192",       "--tp",           "8",        "--pp",   "4",
                                   "--target",  "usual",      "--global-batch", "32"};
  const test::CliResult found = test::run(plan);
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("GovReport, to a loss of 0.925"));
  EXPECT_THAT(found.out, HasSubstr("kWh board"));
  plan.back() = "8192";
  EXPECT_THAT(test::run(plan).err, HasSubstr("more than the 3901 samples of an epoch"));
}

// Epochs that are given have no spread: the interval of the time is that of the step, whose factor is
// above 1.
TEST(Tta, PlansHaveTheIntervalOfTheStep) {
  const test::CliResult found = test::run(
      {"plan",           "llama2_70b", "--gpu",    "h100_sxm", "--gpus",   "64",    "--seq-len", "8192",
       "--tp",           "8",          "--pp",     "4",        "--target", "usual", "--epochs",  "0.5",
       "--global-batch", "32",         "--format", "json"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const auto run = nlohmann::json::parse(found.out).at("targets").at(0);
  const double time = run.at("time_to_target"), factor = run.at("hardware_factor");
  EXPECT_EQ(run.at("epochs_factor"), 1);
  EXPECT_GT(factor, 1.01);
  EXPECT_NEAR(run.at("time_low").get<double>(), time / factor, 1e-6 * time);
  EXPECT_NEAR(run.at("time_high").get<double>(), time * factor, 1e-6 * time);
}

TEST(Tta, SweepsTakeTheUsualTarget) {
  const test::CliResult swept =
      test::run({"sweep", "--model", "resnet50", "--framework", "pytorch", "--gpu", "t4,v100_sxm2_16gb",
                 "--batch", "32,64", "--best", "cost_to_target"});
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  EXPECT_THAT(swept.out, HasSubstr("usual"));
  EXPECT_EQ(swept.err, "");
  const test::CliResult changed =
      test::run({"whatif", "resnet50", "--framework", "pytorch", "--gpu", "t4", "--batch", "32", "--target",
                 "usual", "--set", "gpu.memory_bandwidth=+50%"});
  EXPECT_THAT(changed.out, HasSubstr("time_to_target"));
  EXPECT_THAT(changed.out, Not(HasSubstr("no rent is known")));
}

// A GPU without a price is no candidate for the cheapest, which is said beside the rows.
TEST(Tta, SweepsSayWhatHasNoCost) {
  std::vector<std::string> command = {"sweep",   "--model", "resnet50",      "--framework",
                                      "pytorch", "--gpu",   "t4,rtx4090",    "--batch",
                                      "32,64",   "--best",  "cost_to_target"};
  const test::CliResult swept = test::run(command);
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  EXPECT_THAT(swept.out, Not(HasSubstr("rtx4090")));
  EXPECT_EQ(swept.err, "left out of the choice: no value of cost_to_target (points: 2)\n");
  command.insert(command.begin(), "-q");
  EXPECT_EQ(test::run(command).err, "");
}

// Without a price there is no row of the cost, which is said; without a change the target would change
// nothing.
TEST(Tta, WhatIfSaysThatNoRentIsKnown) {
  std::vector<std::string> command = {"whatif",  "resnet50", "--framework", "pytorch",  "--gpu",
                                      "rtx4090", "--batch",  "32",          "--target", "usual"};
  EXPECT_THAT(test::run(command).err, HasSubstr("expected it with --set or --changes"));
  command.insert(command.end(), {"--set", "gpu.memory_bandwidth=+50%"});
  const test::CliResult changed = test::run(command);
  EXPECT_THAT(changed.out, HasSubstr("energy_to_target"));
  EXPECT_THAT(changed.out, Not(HasSubstr("cost_to_target")));
  EXPECT_THAT(changed.out, HasSubstr("no rent is known of NVIDIA GeForce RTX 4090, and so no cost"));
}

// One batch tells no critical one; a thousand epochs are no power of ten.
TEST(Tta, TargetsThatWereMeasuredAtOneBatch) {
  const std::string listed = test::run({"list", "targets"}).out;
  EXPECT_THAT(listed, testing::ContainsRegex("ncf_mlperf .* HR@10 +16.5 +- +1,048,576"));
  EXPECT_THAT(listed, testing::ContainsRegex("unet3d_mlperf .* Dice +2[0-9][0-9][0-9] "));
}

// RNN-T has a target and rules, but no run that is known: epochs are asked for, and taken as they are given.
TEST(Tta, EpochsMayBeGiven) {
  const auto tta = [](std::vector<std::string> more) {
    std::vector<std::string> all = {"tta",   "rnnt",           "--framework", "pytorch",
                                    "--gpu", "v100_sxm2_16gb", "--batch",     "32"};
    all.insert(all.end(), more.begin(), more.end());
    return test::run(all);
  };
  EXPECT_THAT(tta({}).err,
              HasSubstr("no run of rnnt to 0.058 WER is known, and so no epochs; expected --epochs"));
  const test::CliResult given = tta({"--epochs", "60"});
  ASSERT_EQ(given.exit_code, 0) << given.err;
  EXPECT_THAT(given.out, HasSubstr("epochs are those that were given"));
  for (const char* wrong : {"0", "-1", "x", "1e99", "nan"})
    EXPECT_THAT(tta({"--epochs", wrong}).err, HasSubstr("is no number above 0")) << wrong;
}

}  // namespace
}  // namespace tbdsim
