// A prediction carried to a card with other rates is the prediction for that card.
#include <memory>

#include <gtest/gtest.h>

#include "simulate/prediction/predict.h"
#include "simulate/prediction/repredict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

// A card with other rates, changed or read from a file of its own: the same figures.
TEST(WithRates, AsAPredictionForSuchACard) {
  SpecCache specs = test::source_specs();
  GpuSpec changed = *specs.gpu("titanxp");
  changed.memory_bandwidth = changed.memory_bandwidth * 0.5;
  MathRate& rate = *changed.math[index_of(MathType::fp32)];
  rate.clock = rate.clock * 1.25;
  rate.peak = rate.peak * 1.25;
  const Scenario scenario{.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 16};
  const Prediction before = predict(scenario, specs);
  const Prediction after = with_rates(before, std::make_shared<const GpuSpec>(changed));
  const Calibration calibration = calibration_of(*before.profile, changed, before.framework->libraries,
                                                 {before.framework->workspace_limit.si()});
  const Iteration& iteration = after.iterations.front();
  auto expected = estimate(*iteration.step, 16, calibration);
  scale(expected, *iteration.step, before.framework->factors);
  EXPECT_EQ(after.memory.use[MemoryCategory::workspace],
            plan_memory(*iteration.memory, *iteration.step, expected, 16, *after.framework)
                .use[MemoryCategory::workspace]);
  ASSERT_EQ(iteration.costs.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(iteration.costs[k].total, expected[k].total) << k;
    EXPECT_EQ(iteration.costs[k].sd, expected[k].sd) << k;
    EXPECT_EQ(iteration.costs[k].provenance, expected[k].provenance) << k;
  }
  EXPECT_GT(after.iteration_time(), before.iteration_time());
  EXPECT_EQ(after.peak, before.peak * 1.25);
  EXPECT_EQ(with_rates(after, specs.gpu("titanxp")).iteration_time(), before.iteration_time());
}

// Whether a convolution is faster in fp32 or in TF32 depends on rates, and its residual on that choice.
TEST(WithRates, ConvolutionsChooseTheirArithmeticAgain) {
  SpecCache specs = test::source_specs();
  GpuSpec changed = *specs.gpu("l40s");
  MathRate& fp32 = *changed.math[index_of(MathType::fp32)];
  fp32.clock = fp32.clock * 0.1;
  fp32.peak = fp32.peak * 0.1;
  const Prediction before = predict(
      {.model = "resnet50", .framework = "pytorch", .gpu = "l40s", .batch = 64, .precision = "tf32"}, specs);
  const Prediction after = with_rates(before, std::make_shared<const GpuSpec>(changed));
  const Iteration& iteration = after.iterations.front();
  const auto expected =
      estimate(*iteration.step, 64, with_rates(*before.calibration, changed), after.framework->factors);
  std::size_t others = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    if (iteration.costs[k].math != before.iterations.front().costs[k].math) ++others;
    EXPECT_EQ(iteration.costs[k].math, expected[k].math) << k;
    EXPECT_EQ(iteration.costs[k].total, expected[k].total) << k;
    EXPECT_EQ(iteration.costs[k].sd, expected[k].sd) << k;
  }
  EXPECT_GT(others, 0u);
}

// Whatever cards came in between.
TEST(WithRates, MoreMultiprocessorsAndBack) {
  SpecCache specs = test::source_specs();
  const auto card = specs.gpu("titanxp");
  GpuSpec changed = *card;
  changed.sm_count = 60;
  const auto larger = std::make_shared<const GpuSpec>(changed);
  const Prediction before =
      predict({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 4}, specs);
  const Prediction after = with_rates(with_rates(before, card), larger);
  EXPECT_EQ(after.iteration_time(), with_rates(before, larger).iteration_time());
  EXPECT_NE(after.iteration_time(), before.iteration_time());
  EXPECT_EQ(with_rates(after, card).iteration_time(), before.iteration_time());
}

}  // namespace
}  // namespace tbdsim
