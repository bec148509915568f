// Toy figures: see toy_world.h.
#include "simulate/analysis/whatif.h"

#include <gmock/gmock.h>

#include "simulate/analysis/sensitivity.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "tests/hwspecs/message_of.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

double throughput(const Scenario& scenario, std::initializer_list<const char*> texts, SpecCache& specs) {
  SpecChanges changes;
  for (const char* text : texts) changes.push_back(parse_change(text));
  return predict_changed(scenario, changes, specs).throughput();
}

// 0.73 + 0.49 + 0.55 + 0.49 + 0.61 + 0.73 + 0.49 = 4.09 us for ten samples.
TEST(WhatIf, TwiceTheBandwidthSavesWhereBandwidthLimits) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Scenario scenario = world.scenario(10);
  EXPECT_NEAR(throughput(scenario, {}, specs), 10 / 4.09e-6, 1);
  // relu 0.12, softmax 0.30 (compute), back 0.12, relu back 0.18, momentum 0.12; products are limited by
  // compute.
  EXPECT_NEAR(throughput(scenario, {"gpu.memory_bandwidth=x2"}, specs), 10 / 3.55e-6, 1);
  // Twice the clock as well: 0.24, 0.12, 0.15, 0.12, 0.18, 0.24, 0.12 and 7 x 0.25.
  EXPECT_NEAR(throughput(scenario, {"gpu.memory_bandwidth=+100%", "gpu.boost_clock=500 MHz"}, specs),
              10 / 2.92e-6, 1);
}

TEST(WhatIf, ChangesComposeWithThoseOfTheScenarioAndTheFramework) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Scenario scenario = world.slow_scenario(10);
  EXPECT_NEAR(throughput(scenario, {}, specs), 10 / 12.24e-6, 1);
  // 3 us less at the end of an iteration, given as such or as a factor (of the file's 3 us).
  EXPECT_NEAR(throughput(scenario, {"framework.execution.iteration=1 us"}, specs), 10 / 10.24e-6, 1);
  EXPECT_NEAR(throughput(scenario, {"framework.execution.iteration=x0.5"}, specs), 10 / 10.74e-6, 1);
  const Prediction batch = predict_changed(scenario, {parse_change("batch=5")}, specs);
  EXPECT_EQ(batch.scenario.batch, 5);
}

// A change of rates does to a prediction what with_rates() does: sweeps rely on it.
TEST(WhatIf, IsWhatWithRatesSays) {
  SpecCache specs = test::source_specs();
  const Scenario scenario{.model = "resnet50", .framework = "mxnet", .gpu = "t4", .batch = 32};
  const Prediction changed = predict_changed(
      scenario, {parse_change("gpu.memory_bandwidth=+50%"), parse_change("gpu.sm_count=60")}, specs);
  const Prediction again = with_rates(predict(scenario, specs), changed.gpu);
  EXPECT_EQ(changed.iteration_time().si(), again.iteration_time().si());
  EXPECT_EQ(changed.throughput_interval().low, again.throughput_interval().low);
  EXPECT_NE(again.iteration_time(), predict(scenario, specs).iteration_time());
}

TEST(WhatIf, PartsAddUpToTheIteration) {
  SpecCache specs = test::source_specs();
  const Scenario scenario{.model = "seq2seq", .framework = "tensorflow", .gpu = "p4000", .batch = 64};
  const Prediction before = predict(scenario, specs);
  const Prediction after =
      predict_changed(scenario, {parse_change("framework.lowering.recurrence=fused")}, specs);
  Seconds was, is;
  for (const TimePart& part : time_parts(before, after)) {
    was += part.before;
    is += part.after;
  }
  EXPECT_NEAR(was.si(), before.iteration_time().si(), 1e-9 * was.si());
  EXPECT_NEAR(is.si(), after.iteration_time().si(), 1e-9 * is.si());
  EXPECT_LT(is, was);
}

TEST(WhatIf, BoundsAreNoLessThanWhatIsThereAndElasticitiesAreDerivatives) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Scenario scenario = world.slow_scenario(10);
  const Prediction p = predict(scenario, specs);
  const auto bounds = upper_bounds(p);
  for (const UpperBound& bound : bounds) EXPECT_GE(bound.throughput, p.throughput()) << bound.name;
  // Seven kernels of 0.25 us are left.
  EXPECT_NEAR(bounds.back().throughput, 10 / 1.75e-6, 100);
  for (const Sensitivity& one : sensitivities(scenario, p, specs)) {
    if (one.key != "framework.execution.iteration") continue;
    EXPECT_NEAR(one.elasticity, -3 / 12.24, 0.002);  // 3 of 12.24 us
    EXPECT_NEAR(one.if_doubled, 12.24 / 15.24, 1e-6);
    return;
  }
  FAIL() << "no elasticity of the iteration's time";
}

TEST(WhatIf, EveryFigureOfTheHardwareIsAmongTheElasticities) {
  const test::CliResult result =
      test::run({"whatif", "resnet50", "--framework", "mxnet", "--gpu", "v100_sxm2_16gb", "--batch", "32"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* key :
       {"gpu.memory_bandwidth", "gpu.sm_count", "gpu.boost_clock", "gpu.l2_size", "gpu.memory_size",
        "gpu.math.fp32.flops_per_clock_per_sm", "link.pcie3.bandwidth", "infinite compute"})
    EXPECT_THAT(result.out, HasSubstr(key));
}

TEST(WhatIf, ChangesAreKeptInYaml) {
  const test::TempDir directory;
  const std::string file =
      directory
          .write("faster.yaml",
                 "title: Faster\nsource: a test\nset: {gpu.memory_bandwidth: +50%, batch: 16}\n")
          .string();
  const test::CliResult result =
      test::run({"whatif", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch", "32",
                 "--changes", file, "--set", "gpu.sm_count=40", "--format", "csv"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("time,convolution,s,"));
  EXPECT_THAT(test::run({"whatif", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch", "32",
                         "--changes", directory.write("bad.yaml", "sets: {a.b: 1}\n").string()})
                  .err,
              HasSubstr("bad.yaml:1:1: key 'set' is missing; is 'sets' meant to be it?"));
}

// A length goes by the name of its flag, too.
TEST(WhatIf, TakesTheNameOfTheFlagOfALength) {
  SpecCache specs = test::source_specs();
  const Scenario scenario{.model = "bert_base", .framework = "pytorch", .gpu = "t4", .batch = 8};
  EXPECT_EQ(throughput(scenario, {"seq_len=128"}, specs),
            throughput(scenario, {"sequence_length=128"}, specs));
  EXPECT_NE(throughput(scenario, {"seq_len=128"}, specs), throughput(scenario, {}, specs));
}

// Sharded models are layouts of `plan`.
TEST(Scaling, SaysWhereShardedModelsAre) {
  const auto error_of = [](const char* method) {
    return test::run({"scaling", "resnet50:pytorch", "--gpu", "t4", "--batch", "8", "--exchange", method})
        .err;
  };
  for (const char* method : {"fsdp", "zero3"})
    EXPECT_THAT(error_of(method), HasSubstr("('tbd-sim plan' divides a model over GPUs"));
  EXPECT_THAT(error_of("allreduce"), testing::Not(HasSubstr("tbd-sim plan")));
}

TEST(WhatIf, RefusesWhatNoSpecHas) {
  const auto message = [](const char* change) {
    return test::run({"whatif", "resnet50", "--framework", "mxnet", "--gpu", "titanxp", "--batch", "32",
                      "--set", change})
        .err;
  };
  EXPECT_THAT(message("gpu.memory_bandwith=900 GB/s"),
              HasSubstr("unknown key 'memory_bandwith'; did you mean 'memory_bandwidth'?"));
  EXPECT_THAT(message("gpu.memory_bandwidth=900"), HasSubstr("has no unit"));
  EXPECT_THAT(message("gpu.memory_bandwidth=-100%"), HasSubstr("is zero; expected more than zero"));
  EXPECT_THAT(message("gpu.memory_bandwidth=-200%"), HasSubstr("is negative"));
  EXPECT_THAT(message("gpu.sm_count=1000000"), HasSubstr("out of range"));
  EXPECT_THAT(message("card.sm_count=4"), HasSubstr("no spec is called 'card'"));
  EXPECT_THAT(message("precison=amp"), HasSubstr("did you mean 'precision'?"));
  EXPECT_THAT(message("framework.factors.convolutions=x2"), HasSubstr("did you mean 'convolution'?"));
  EXPECT_THAT(message("framework.execution.kernel=0 us"), HasSubstr("is zero"));
  EXPECT_THAT(message("batch=0"), HasSubstr("batch: '0' is no whole number from 1"));
}

}  // namespace
}  // namespace tbdsim
