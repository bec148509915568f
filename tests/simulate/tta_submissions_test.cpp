// Submissions beside predictions: a table of a few made-up runs, whose errors are known.
#include "simulate/validation/tta_submissions.h"

#include <cmath>
#include <sstream>

#include <gmock/gmock.h>

#include "simulate/prediction/predict.h"
#include "simulate/prediction/uncertainty.h"
#include "simulate/report/tta_validation_table.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

SuiteRules rules() {
  return read_suite_rules(std::filesystem::path(TBDSIM_SOURCE_DIR) /
                          "simulate/validation/benchmarks/mlperf_training.yaml");
}

Submission resnet(const char* gpu, std::int64_t batch, double seconds) {
  return {.benchmark = "resnet50_v15",
          .round = "v1",
          .gpu = gpu,
          .precision = "fp16_mixed",
          .split = "score",
          .network = {},
          .machine = {},
          .target = {},
          .gpus = 8,
          .nodes = 1,
          .global_batch = batch,
          .runs = {},
          .samples_per_s = 20000,
          .time = Seconds(seconds),
          .samples = 35.0 * 1281167};
}

TEST(Submissions, TheMeanWithoutTheFastestAndTheSlowest) {
  BenchmarkRules five;
  five.runs = 5;
  five.dropped = 1;
  EXPECT_DOUBLE_EQ(result_of({Seconds(9), Seconds(1), Seconds(4), Seconds(3), Seconds(5)}, five).si(), 4);
}

// The time after 35 epochs is the training of 35 epochs and nine evaluations, 35 / 4 rounded up, of 0.3 s and
// more.
TEST(Submissions, TimeAfterTheMeasuredSamples) {
  SpecCache specs = test::source_specs();
  const Submission s = resnet("a100_sxm_80gb", 3264, 1700);
  const SubmissionResult result = predict_submission(s, rules(), specs);
  ASSERT_EQ(result.status, "ok");
  const double training = 35.0 * 1281167 / result.samples_per_s;
  EXPECT_GT(result.time_of_samples->si(), training + 9 * 0.3);
  EXPECT_LT(result.time_of_samples->si(), training + 9 * 4);
}

// The law of a batch that is among the points is fitted without it.
TEST(Submissions, TheLawIsFittedWithoutTheRowsBatch) {
  SpecCache specs = test::source_specs();
  const Convergence to = read_convergence(specs.catalog().find(Kind::target, "resnet50_759"));
  const std::vector<ConvergencePoint> others = without_batch(to.points, 3264);
  const double epochs = epochs_near(fit_convergence_law(others), others, to.evaluation.every, 3264);
  const Submission s = resnet("a100_sxm_80gb", 3264, 1700);
  EXPECT_NEAR(predict_submission(s, rules(), specs).samples_by_law, epochs * to.epoch, 1);
}

// Runs of another target have its epochs, which the law does not.
TEST(Submissions, TheLawIsOfOneTarget) {
  SpecCache specs = test::source_specs();
  Submission s = resnet("a100_sxm_80gb", 3264, 1700);
  s.target = "0.749 top-1";
  const SubmissionResult result = predict_submission(s, rules(), specs);
  EXPECT_TRUE(result.time_of_samples.has_value());
  EXPECT_FALSE(result.time_by_law.has_value());
}

// The mean of many runs is surer than one; a time is met within 15 % or the spread of its runs.
TEST(Submissions, IntervalsAreOfTheMeanOfRuns) {
  SpecCache specs = test::source_specs();
  Submission s = resnet("a100_sxm_80gb", 3264, 1700);
  s.runs = 1;
  const SubmissionResult one = predict_submission(s, rules(), specs);
  s.runs = 100;
  EXPECT_LT(predict_submission(s, rules(), specs).law_factor, one.law_factor);
  s.time = *one.time_by_law / 1.4;
  const auto met = [&](double spread) {
    s.spread = spread;
    return validate_submissions(std::span(&s, 1), rules(), specs).groups.at(0).met;
  };
  EXPECT_EQ(met(0.1), 0);
  EXPECT_EQ(met(0.5), 1);
}

// 40 % are more than 80 % of single runs with a spread of 0.31 are off by, 1.2816 * 0.31 = 39.7 %, and less
// than with 0.32, 41.0 %.
TEST(Submissions, TheSpreadOfSingleRuns) {
  SpecCache specs = test::source_specs();
  Submission s = resnet("a100_sxm_80gb", 3264, 1700);
  s.time = *predict_submission(s, rules(), specs).time_by_law / 1.4;
  const auto within_luck = [&](double spread) {
    s.spread = spread;
    return validate_submissions(std::span(&s, 1), rules(), specs).groups.at(0).within_luck;
  };
  EXPECT_EQ(within_luck(0.31), 0);
  EXPECT_EQ(within_luck(0.32), 1);
  EXPECT_EQ(within_luck(0), std::nullopt);  // not known
  std::vector<Submission> rows(2, s);
  rows[0].spread = 0.32;
  rows[1].spread = 0;  // does not count
  EXPECT_EQ(validate_submissions(rows, rules(), specs).groups.at(0).within_luck, 1);
}

// The spread of a benchmark takes the place of its framework's; without a target there is a throughput alone.
TEST(Submissions, RulesOfABenchmark) {
  SpecCache specs = test::source_specs();
  const Submission s = resnet("a100_sxm_80gb", 3264, 1700);
  SuiteRules narrow = rules();
  BenchmarkRules& benchmark = narrow.benchmarks.at("resnet50_v15");
  benchmark.spread = 0;
  const SubmissionResult sure = predict_submission(s, narrow, specs);
  benchmark.spread = 0.3;
  const SubmissionResult unsure = predict_submission(s, narrow, specs);
  EXPECT_DOUBLE_EQ(unsure.samples_per_s, sure.samples_per_s);
  EXPECT_NEAR(std::log(unsure.rate_factor), std::hypot(std::log(sure.rate_factor), kEightyPercent * 0.3),
              1e-9);
  benchmark.exchange = "torch_data_parallel";
  EXPECT_LT(predict_submission(s, narrow, specs).samples_per_s, sure.samples_per_s);
  benchmark.target.clear();
  const SubmissionResult rate = predict_submission(s, narrow, specs);
  EXPECT_EQ(rate.status, "ok");
  EXPECT_FALSE(rate.time_of_samples || rate.time_by_law);
}

TEST(Submissions, RefusesRulesThatMakeNoSense) {
  constexpr const char* kRules =
      "title: t\nsource: s\ntimed: {startup: false, checkpoints: false}\nprecisions: {}\nmachines: {}\n"
      "domains: {}\nnetwork: infiniband_200g\nbenchmarks:\n"
      "  r: {model: m, variant: v, framework: f, runs: 5, dropped: 1, spread: 0.1, exchange: "
      "zero1}\nsources: {}\n";
  const test::TempDir dir;
  const auto refused = [&](const std::string& what, const std::string& instead) {
    std::string text = kRules;
    text.replace(text.find(what), what.size(), instead);
    return test::message_of<SpecError>([&] { (void)read_suite_rules(dir.write("rules.yaml", text)); });
  };
  EXPECT_EQ(read_suite_rules(dir.write("good.yaml", kRules)).benchmarks.at("r").exchange, "zero1");
  EXPECT_THAT(refused("zero1", "zero_1"), HasSubstr("rules.yaml:9:"));
  EXPECT_THAT(refused("zero1", "zero_1"), HasSubstr("zero1"));
  EXPECT_THAT(refused("spread: 0.1", "spread: 2"), HasSubstr("spread"));
  EXPECT_THAT(refused("dropped: 1", "dropped: 3"), HasSubstr("dropped"));
}

TEST(Submissions, MedianErrorsAndTheOrderOfSystems) {
  SpecCache specs = test::source_specs();
  const SuiteRules of = rules();
  std::vector<Submission> rows = {resnet("v100_sxm2_16gb", 1664, 4000), resnet("a100_sxm_80gb", 3264, 1700),
                                  resnet("h100_sxm", 3200, 5000)};
  rows.push_back(resnet("a100_sxm_80gb", 3264, 1));
  rows.back().benchmark = "minigo";  // which the rules leave out
  const SubmissionValidation validation = validate_submissions(rows, of, specs);
  ASSERT_EQ(validation.groups.size(), 2u);
  EXPECT_EQ(validation.groups[0].benchmark, "minigo");
  EXPECT_EQ(validation.groups[0].covered, 0);
  EXPECT_FALSE(validation.groups[0].rate.has_value());
  const SubmissionErrors& errors = validation.groups[1];
  std::vector<double> off;
  for (int i = 0; i < 3; ++i)
    off.push_back(
        std::abs(predict_submission(rows[static_cast<std::size_t>(i)], of, specs).samples_per_s / 20000 - 1));
  std::sort(off.begin(), off.end());
  EXPECT_DOUBLE_EQ(*errors.rate, off[1]);
  EXPECT_EQ(errors.pairs, 3);
  EXPECT_NEAR(*errors.tau, (1 - 2) / 3.0, 1e-12);  // the H100 is last where it should be first
  EXPECT_THAT(tta_validation_table(validation, of).counts, testing::SizeIs(1));
}

TEST(Submissions, WhatIsNotCoveredSaysWhy) {
  SpecCache specs = test::source_specs();
  const auto status = [&](Submission s) { return predict_submission(s, rules(), specs).status; };
  Submission s = resnet("a100_sxm_80gb", 3264, 1700);
  s.nodes = 3;
  EXPECT_THAT(status(s), HasSubstr("not the same number on each"));
  s = resnet("a100_pcie_80gb", 3264, 1700);
  s.gpus = 10;
  EXPECT_EQ(status(s), "ok");
  s = resnet("v100_sxm3_32gb_450w", 3328, 1700);
  s.gpus = 32;
  s.nodes = 2;
  EXPECT_EQ(status(s), "ok");
  EXPECT_THAT(status(resnet("mi300x", 3264, 1700)), HasSubstr("unknown GPU 'mi300x'"));
  s = resnet("a100_sxm_80gb", 3264, 1700);
  s.precision = "int8";
  EXPECT_THAT(status(s), HasSubstr("unknown precision 'int8'"));
}

// A benchmark that is left out says why; a decoder is divided over its GPUs, in the layout of its script.
TEST(Submissions, DecodersAreDivided) {
  SpecCache specs = test::source_specs();
  SuiteRules of = rules();
  Submission s = resnet("h100_sxm", 8, 1700);
  s.benchmark = "minigo";
  EXPECT_THAT(predict_submission(s, of, specs).status, HasSubstr("tree search"));
  s.benchmark = "llama2_70b_lora";
  s.precision = "fp8_mixed";
  s.samples = 3000;
  of.benchmarks.at("llama2_70b_lora").layouts.clear();
  const SubmissionResult fastest = predict_submission(s, of, specs);
  ASSERT_EQ(fastest.status, "ok");
  EXPECT_GT(fastest.time_of_samples->si(), 3000 / fastest.samples_per_s);
  EXPECT_GT(fastest.law_factor, fastest.rate_factor);
  of.benchmarks.at("llama2_70b_lora").layouts = {
      {.round = "v1", .gpu = {}, .gpus = 4, .most = 8, .settings = {{"tp", "8"}, {"micro_batch", "1"}}}};
  const double scripted = predict_submission(s, of, specs).samples_per_s;
  EXPECT_LT(scripted, fastest.samples_per_s);
  ScriptedLayout& layout = of.benchmarks.at("llama2_70b_lora").layouts[0];
  const ScriptedLayout of_this = layout;
  const auto rate_with = [&](const ScriptedLayout& other) {
    layout = other;
    return predict_submission(s, of, specs).samples_per_s;
  };
  EXPECT_EQ(rate_with({{}, "h100_sxm", 8, 8, of_this.settings}), scripted);
  EXPECT_EQ(rate_with({"v2", {}, 4, 8, of_this.settings}), fastest.samples_per_s);
  EXPECT_EQ(rate_with({{}, "h200", 4, 8, of_this.settings}), fastest.samples_per_s);
  EXPECT_EQ(rate_with({{}, {}, 4, 7, of_this.settings}), fastest.samples_per_s);
}

// Parts of a GPU's batch are smaller kernels, whose gradients are added up.
TEST(Submissions, GradientsOfPartsOfABatch) {
  SpecCache specs = test::source_specs();
  Submission s = resnet("rtxa5000", 448, 1700);
  s.benchmark = "bert_large";
  const double whole = predict_submission(s, rules(), specs).samples_per_s;
  s.accumulate = 14;
  const double parts = predict_submission(s, rules(), specs).samples_per_s;
  EXPECT_LT(parts, whole);
  EXPECT_GT(parts, whole / 2);
}

TEST(Submissions, PrecisionsMayDependOnTheGpu) {
  const SuiteRules of = rules();
  const BenchmarkRules& llama = of.benchmarks.at("llama31_405b");
  EXPECT_EQ(precision_of(of, llama, "fp8/fp4_mixed", "gb200"), "nvfp4");
  EXPECT_EQ(precision_of(of, llama, "fp8/fp4_mixed", "b200"), "fp8");
  EXPECT_EQ(precision_of(of, llama, "", "h100_sxm"), "fp8");
  EXPECT_EQ(precision_of(of, llama, "bf16_mixed", "h100_sxm"), "bf16");  // the suite's
  EXPECT_EQ(precision_of(of, of.benchmarks.at("resnet50_v15"), "", "h100_sxm"), "amp");
}

// The first rounds lack kernels that were tuned for later ones.
TEST(Submissions, EarlierRoundsHaveTheirOwnCode) {
  const SuiteRules of = rules();
  EXPECT_EQ(benchmark_in(of, "bert_large", "v1.0").framework, "pytorch_mlperf_bert");
  EXPECT_EQ(benchmark_in(of, "bert_large", "v0.7").framework, "pytorch_ngc_1_6");
  EXPECT_EQ(benchmark_in(of, "bert_large", "v1.0").sizes.at("sequence_length"), 256);
  EXPECT_EQ(benchmark_in(of, "bert_large", "v0.7").sizes.at("sequence_length"), 512);
  EXPECT_EQ(benchmark_in(of, "transformer_big", "v0.7").framework, "pytorch_mlperf");
  EXPECT_EQ(benchmark_in(of, "gnmt", "v0.6").sizes, benchmark_in(of, "gnmt", "v1.0").sizes);
}

// Features that eight H100 do not hold come from the host; those of eight H200 stay on the GPUs.
TEST(Submissions, DataThatGpusDoNotHoldComesFromTheHost) {
  SpecCache specs = test::source_specs();
  SuiteRules of = rules();
  Submission s = resnet("h100_sxm", 16384, 1700);
  s.benchmark = "rgat";
  const double fed = predict_submission(s, of, specs).samples_per_s;
  s.gpu = "h200";
  const double kept = predict_submission(s, of, specs).samples_per_s;
  of.benchmarks.at("rgat").resident = Bytes(0);
  EXPECT_EQ(predict_submission(s, of, specs).samples_per_s, kept);
  s.gpu = "h100_sxm";
  EXPECT_GT(predict_submission(s, of, specs).samples_per_s, fed);
}

// The time after given samples needs no measured epochs; that by law does.
TEST(Submissions, ATargetWithoutPointsHasNoLaw) {
  SpecCache specs = test::source_specs();
  Submission s = resnet("a100_sxm_80gb", 2048, 1700);
  s.benchmark = "rnnt";
  s.samples = 60.0 * 281241;
  const SubmissionResult result = predict_submission(s, rules(), specs);
  ASSERT_EQ(result.status, "ok");
  EXPECT_GT(result.time_of_samples->si(), *s.samples / result.samples_per_s);
  EXPECT_FALSE(result.time_by_law.has_value());
}

constexpr const char* kHeader =
    "benchmark,round,gpu,gpus,nodes,global_batch,precision,samples_per_s,tta_mean_s,samples_mean,split\n";

std::string refusal(const std::string& row) {
  std::istringstream in(kHeader + row + "\n");
  return test::message_of<SpecError>([&] { (void)read_submissions(in, "runs.csv", rules()); });
}

TEST(Submissions, ReadsATable) {
  std::istringstream in(std::string(kHeader) +
                        "resnet50_v15,v1.0,a100_sxm_80gb,8,1,3264,fp16_mixed,,1700.5,,fit\n");
  const std::vector<Submission> rows = read_submissions(in, "runs.csv", rules());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].split, "fit");
  EXPECT_EQ(rows[0].time, Seconds(1700.5));
  EXPECT_EQ(rows[0].accumulate, 1);
  EXPECT_FALSE(rows[0].samples.has_value());
}

TEST(Submissions, ReadsPartsOfABatch) {
  std::istringstream in(
      "benchmark,gpu,gpus,nodes,global_batch,grad_accum,samples_per_s,tta_mean_s\nbert_large,l4,6,1,240,2,,"
      "1\n");
  EXPECT_EQ(read_submissions(in, "runs.csv", rules()).at(0).accumulate, 2);
}

TEST(Submissions, RefusesNumbersThatAreNone) {
  EXPECT_THAT(refusal("r,,g,eight,1,1,,,1,,fit"),
              HasSubstr("runs.csv:2:1: gpus: 'eight' is no whole number"));
  EXPECT_THAT(refusal("r,,g,8,1,1,,,,,fit"), HasSubstr("tta_mean_s: '' is missing"));
  EXPECT_THAT(refusal("r,,g,8,1,1,,-5,1,,fit"), HasSubstr("samples_per_s: '-5' is no number above 0"));
  EXPECT_THAT(refusal("r,,g,8,1,1,,,1,,test"), HasSubstr("split: 'test' is neither fit nor score"));
}

// Five runs of ResNet-50: without 1 and 9 the mean is (3 + 4 + 5) / 3 = 4; all five have a mean of 4.4 and a
// standard deviation of sqrt(35.2 / 4) = 2.966.
TEST(Submissions, TimesOfAllRunsMakeTheResult) {
  const auto read = [](const std::string& times) {
    std::istringstream in(
        "benchmark,gpu,gpus,nodes,global_batch,precision,samples_per_s,tta_mean_s,run_times_s\n"
        "resnet50_v15,a100_sxm_80gb,8,1,3264,fp16_mixed,,," +
        times + "\n");
    return read_submissions(in, "runs.csv", rules()).at(0);
  };
  const Submission s = read("9 1 4 3 5");
  EXPECT_DOUBLE_EQ(s.time.si(), 4);
  EXPECT_EQ(s.runs, 3);
  EXPECT_NEAR(s.spread, 2.966 / 4.4, 1e-3);
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)read("9 one 4"); }),
              HasSubstr("run_times_s: '9 one 4' has 'one'; expected seconds"));
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)read("9 1"); }),
              HasSubstr("has 2 times, of which the rules drop 2; expected more"));
}

TEST(Submissions, OnTheCommandLine) {
  const test::TempDir dir;
  const std::string file =
      dir.write("runs.csv",
                std::string(kHeader) +
                    "resnet50_v15,v1.0,a100_sxm_80gb,8,1,3264,fp16_mixed,26000,1700,44840845,fit\n")
          .string();
  const test::CliResult result = test::run({"validate", "--tta", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("resnet50_v15"));
  EXPECT_THAT(test::run({"validate", "--tta", file, "--worst", "3"}).err,
              HasSubstr("--tta has a table of its own"));
  EXPECT_EQ(test::run({"validate", "--tta", "nothing.csv"}).exit_code, 2);
}

}  // namespace
}  // namespace tbdsim
