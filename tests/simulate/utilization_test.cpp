// Utilization of the GPU, its arithmetic and the host, and what limits an iteration, by hand in the toy
// world.
#include "simulate/prediction/utilization.h"

#include <gmock/gmock.h>

#include "simulate/prediction/predict.h"
#include "tests/simulate/toy_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr double kBusy = 4.09;   // us, of the GPU (toy_world.h)
constexpr double kSlow = 12.24;  // us, an iteration of the slow framework
constexpr double kTolerance = 1e-9;

// The thread issues 6 + 2 us and works 3 us; kernels do 768 flop of 500 in a microsecond.
TEST(Utilization, OfASlowFramework) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.slow_scenario(10), specs);
  const Activity activity = activity_of(p);
  EXPECT_NEAR(activity.time.si(), kSlow * 1e-6, 1e-15);
  EXPECT_NEAR(gpu_utilization(activity), kBusy / kSlow, kTolerance);
  EXPECT_NEAR(*fp32_utilization(activity, *p.gpu), 768 / (500 * kBusy), kTolerance);
  EXPECT_NEAR(cpu_utilization(activity), 11 / (28 * kSlow), kTolerance);
  EXPECT_FALSE(tensor_core_utilization(activity, *p.gpu));
  EXPECT_NEAR(p.share(Limit::cpu), 1 - kBusy / kSlow, kTolerance);
  EXPECT_EQ(p.share(Limit::input), 0);
  EXPECT_EQ(p.bound(), Limit::cpu);
}

// Ten images of 1 us are 10 us of two threads, 5 us before the iteration needs them.
TEST(Utilization, DecodingIsWorkOfTheHost) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.slow_scenario(10, world.dataset_decoded_in("1 us")), specs);
  EXPECT_NEAR(p.iteration_time().si(), kSlow * 1e-6, 1e-15);
  EXPECT_NEAR(cpu_utilization(activity_of(p)), (11 + 10) / (28 * kSlow), kTolerance);
}

// Decoding at 10 us a sample limits the iteration to 50 us, which is longer than the GPU's work.
TEST(Utilization, SamplesCanBeTheLimit) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  const Prediction p = predict(world.slow_scenario(10, world.dataset_decoded_in("10 us")), specs);
  EXPECT_NEAR(p.iteration_time().si(), 50e-6, 1e-15);
  EXPECT_NEAR(p.share(Limit::input), (50 - kSlow) / 50, kTolerance);
  EXPECT_NEAR(p.share(Limit::cpu), (kSlow - kBusy) / 50, kTolerance);
  EXPECT_EQ(p.bound(), Limit::input);
}

// A framework that makes samples up on the GPU waits for none.
TEST(Utilization, MadeUpSamplesAreNotDecoded) {
  const test::ToyWorld world;
  SpecCache specs = test::source_specs();
  Scenario scenario = world.scenario(10);
  scenario.dataset = world.dataset_decoded_in("10 us");
  EXPECT_NEAR(predict(scenario, specs).iteration_time().si(), kBusy * 1e-6, 1e-15);
}

// 64 filters of 3x3 over 64 channels, 8x8 pixels, one image: 2 x 64 x 64 x 9 x 64 flop in the direct form.
TEST(Utilization, WinogradExecutesLess) {
  Kernel kernel;
  kernel.kind = KernelKind::convolution;
  kernel.shape = ConvShape{.images = {0, 1},
                           .channels = 64,
                           .height = 8,
                           .width = 8,
                           .filters = 64,
                           .out_height = 8,
                           .out_width = 8,
                           .kernel_height = 3,
                           .kernel_width = 3};
  const double direct = 2.0 * 64 * 64 * 9 * 64;
  kernel.flops = {0, static_cast<std::int64_t>(direct)};
  KernelCost cost;
  cost.algorithm = Algorithm::implicit_gemm;
  EXPECT_DOUBLE_EQ(executed_flops(kernel, cost, 1).si(), direct);
  cost.algorithm = Algorithm::winograd;
  EXPECT_DOUBLE_EQ(executed_flops(kernel, cost, 1).si(), direct / 2.25);
  cost.algorithm = Algorithm::winograd_nonfused;
  EXPECT_DOUBLE_EQ(executed_flops(kernel, cost, 1).si(), direct / 4);
  // One tile of 544 frequencies, 4 multiply-adds each, for 8 x 8 results of 9.
  cost.algorithm = Algorithm::fft_tiling;
  EXPECT_DOUBLE_EQ(executed_flops(kernel, cost, 1).si(), direct * 544 * 4 / (64 * 9));
}

// Where tensor cores do TF32 at the rate of the fp32 lanes, Winograd's algorithm in fp32 wins; on an A100
// they are eight times as fast.
TEST(Utilization, Tf32MayRunInFp32) {
  SpecCache specs = test::source_specs();
  const auto in_fp32 = [&](const std::string& gpu) {
    const Prediction p = predict(
        {.model = "resnet50", .framework = "pytorch", .gpu = gpu, .batch = 64, .precision = "tf32"}, specs);
    int count = 0;
    for (std::size_t k = 0; k < p.typical().costs.size(); ++k) {
      const bool asked = p.typical().step->kernels[k].math == MathType::tf32;
      if (asked && p.typical().costs[k].math == MathType::fp32) ++count;
    }
    return count;
  };
  EXPECT_GT(in_fp32("rtx3090"), 10);
  EXPECT_EQ(in_fp32("a100_sxm_40gb"), 0);
}

// Mixed precision: products run on a V100's tensor cores and are no single-precision work; a P100 has none,
// and packs halves instead.
TEST(Utilization, OfTensorCores) {
  SpecCache specs = test::source_specs();
  Scenario scenario{.model = "resnet50", .framework = "pytorch", .gpu = "v100_sxm2_16gb", .batch = 64};
  const Prediction single = predict(scenario, specs);
  EXPECT_EQ(tensor_core_utilization(activity_of(single), *single.gpu), 0.0);
  EXPECT_GT(*fp32_utilization(activity_of(single), *single.gpu), 0.2);
  scenario.precision = "amp";
  const Prediction mixed = predict(scenario, specs);
  EXPECT_GT(*tensor_core_utilization(activity_of(mixed), *mixed.gpu), 0.1);
  EXPECT_LT(*fp32_utilization(activity_of(mixed), *mixed.gpu), 0.05);
  scenario.gpu = "p100_pcie";
  const Prediction packed = predict(scenario, specs);
  EXPECT_FALSE(tensor_core_utilization(activity_of(packed), *packed.gpu));
  EXPECT_LT(*fp32_utilization(activity_of(packed), *packed.gpu), 0.05);
}

}  // namespace
}  // namespace tbdsim
