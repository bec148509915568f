// Use of the pipes of a GPU's multiprocessors while kernels run.
#include "simulate/prediction/pipe_utilization.h"

#include <gmock/gmock.h>

#include "simulate/prediction/predict.h"
#include "simulate/prediction/utilization.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

Prediction resnet(const char* gpu, const char* precision) {
  static SpecCache specs = test::source_specs();
  return predict(
      Scenario{.model = "resnet50", .framework = "pytorch", .gpu = gpu, .batch = 16, .precision = precision},
      specs);
}

// An exponential and a reciprocal for each of 10 numbers of every sample.
TEST(PipeUse, SpecialFunctionsOfAnActivation) {
  Kernel kernel;
  kernel.op = "sigmoid";
  kernel.shape = VectorShape{{0, 10}};
  EXPECT_EQ(special_functions(kernel, 3), 60);
  kernel.op = "relu";
  EXPECT_EQ(special_functions(kernel, 3), 0);
  // Five steps of an LSTM of 7 units, 3 samples: four gates and a tanh, two instructions each.
  kernel.shape = RecurrentShape{.batch = {0, 1}, .steps = 5, .inputs = 2, .hidden = 7, .gates = 4};
  EXPECT_EQ(special_functions(kernel, 3), 3 * 5 * 7 * 10);
}

TEST(PipeUse, LanesOfEachGeneration) {
  EXPECT_EQ(special_lanes(6.1), 32);
  EXPECT_EQ(special_lanes(6.0), 16);
  EXPECT_EQ(special_lanes(7.5), 16);
}

// 768 flop of the toy world's products in kernels that take 4.09 us less their gaps; the card does 500 in a
// microsecond.
TEST(PipeUse, OfTheSinglePrecisionPipe) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.scenario(10), specs);
  const std::optional<PipeUse> use = pipe_use(p);
  ASSERT_TRUE(use);
  EXPECT_GE(use->fma, *fp32_utilization(activity_of(p), *p.gpu));
  EXPECT_LE(use->fma, 1);
  EXPECT_EQ(use->tensor, 0);
  EXPECT_EQ(use->fp16, 0);
}

TEST(PipeUse, HalfPrecisionIsOfTensorCoresOrOfPackedArithmetic) {
  const PipeUse full = pipe_use(resnet("rtx2080ti", "fp32")).value();
  const PipeUse mixed = pipe_use(resnet("rtx2080ti", "amp")).value();
  EXPECT_EQ(full.tensor, 0);
  EXPECT_GT(mixed.tensor, 0.05);
  EXPECT_LT(mixed.fma, full.fma);
  EXPECT_EQ(mixed.fp16, 0);
  const PipeUse p100 = pipe_use(resnet("p100_sxm2", "amp")).value();
  EXPECT_GT(p100.fp16, 0.05);
  EXPECT_EQ(p100.tensor, 0);
}

}  // namespace
}  // namespace tbdsim
