// Times of a step's products within the board's power, by hand.
#include "costmodel/step_power.h"

#include <cmath>

#include <gmock/gmock.h>

namespace tbdsim {
namespace {

KernelCost cost_of(double milliseconds) {
  KernelCost cost;
  cost.total = Seconds(1e-3 * milliseconds);
  cost.math = MathType::bf16;
  return cost;
}

// 100 SMs of Hopper's sort at 1 GHz, 1e15 flop/s, whose products would draw 815 W at the peak, on a board of
// half as much.
class StepPower : public testing::Test {
 protected:
  StepPower() {
    gpu_.architecture = "hopper";
    gpu_.compute_capability = 9;
    gpu_.sm_count = 100;
    gpu_.tdp = Watts(407.5);
    MathRate rate;
    rate.peak = FlopsPerSecond(1e15);
    rate.clock = Hertz(1e9);
    rate.flops_per_clock_per_sm = 4'096;
    gpu_.math[index_of(MathType::bf16)] = rate;
    calibration_.gpu = &gpu_;
  }

  // Milliseconds of a kernel of 1e12 operations, 1 ms at the peak and 1.25 alone, in a step with a kernel of
  // another kind.
  [[nodiscard]] double beside(KernelKind kind, double milliseconds, const Kernel& limited = product()) const {
    Kernel other;
    other.kind = kind;
    TrainingStep step;
    step.kernels = {limited, other};
    std::vector<KernelCost> costs = {cost_of(1.25), cost_of(milliseconds)};
    limit_by_power(step, 1, calibration_, costs);
    EXPECT_EQ(costs[1].total, Seconds(1e-3 * milliseconds)) << "only tensor cores are limited";
    if (milliseconds == 0 && gpu_.sm_count == 100) {  // fewer have no such peak
      KernelCost alone = cost_of(1.25);
      limit_by_power(limited, 1, calibration_, alone);
      EXPECT_NEAR(alone.total / costs[0].total, 1, 1e-3);
    }
    return 1e3 * costs[0].total.si();
  }

  [[nodiscard]] static Kernel product() {
    Kernel product;
    product.kind = KernelKind::gemm;
    product.math = MathType::bf16;
    product.shape = GemmShape{.m = fixed_size(1'000), .n = fixed_size(1'000), .k = fixed_size(500'000)};
    return product;
  }
  [[nodiscard]] static Kernel convolution(std::int64_t images) {  // of 1e9 operations an image
    Kernel convolution;
    convolution.kind = KernelKind::convolution;
    convolution.math = MathType::bf16;
    convolution.shape = ConvShape{.images = fixed_size(images),
                                  .channels = 500,
                                  .height = 100,
                                  .width = 100,
                                  .filters = 100,
                                  .out_height = 100,
                                  .out_width = 100,
                                  .kernel_height = 1,
                                  .kernel_width = 1};
    return convolution;
  }

  // Expects that further SMs never slow the kernel down.
  void sms_are_never_slower(const Kernel& limited) {
    for (const double milliseconds : {0.0, 0.5, 3.0}) {
      double before = 100;
      for (int sms = 10; sms <= 400; sms += 10) {
        gpu_.sm_count = sms;
        gpu_.math[index_of(MathType::bf16)]->peak = FlopsPerSecond(1e13 * sms);
        const double now = beside(KernelKind::elementwise, milliseconds, limited);
        EXPECT_LE(now, before * (1 + 1e-4)) << sms;
        before = now;
      }
    }
  }

  GpuSpec gpu_;
  Calibration calibration_;
};

// 0.5 = 0.15 + 0.85 x^3 of the power at the peak.
TEST_F(StepPower, OfProductsAlone) {
  EXPECT_NEAR(beside(KernelKind::elementwise, 0), 1 / std::cbrt(0.35 / 0.85), 2e-3);
}

// At 0.8 of the peak the product draws (0.15 + 0.85 * 0.512) / 0.5 = 1.1704 of the board's power for 1.25 ms,
// 0.213 ms of it too much; another kernel leaves 0.35 of its time.
TEST_F(StepPower, OtherKernelsLeaveTheirs) {
  EXPECT_EQ(beside(KernelKind::elementwise, 0.61), 1.25);
  EXPECT_GT(beside(KernelKind::elementwise, 0.6), 1.25);
  EXPECT_EQ(beside(KernelKind::transfer, 100), beside(KernelKind::transfer, 0)) << "copies by the bus";
}

TEST_F(StepPower, ConvolutionsAreLimitedAsProducts) {
  const Kernel convolution = StepPower::convolution(1'000);
  for (const double milliseconds : {0.0, 0.25, 0.6, 0.61})
    EXPECT_EQ(beside(KernelKind::elementwise, milliseconds, convolution),
              beside(KernelKind::elementwise, milliseconds))
        << milliseconds;
}

// A convolution at 0.01 of the peak draws what other kernels do and leaves as much; an image of it takes 1 us
// at the peak.
TEST_F(StepPower, SlowConvolutionsLeaveAsMuchAsOthers) {
  TrainingStep step;
  step.kernels = {product(), convolution(6)};
  for (const double milliseconds : {0.61, 0.6}) {
    std::vector<KernelCost> costs = {cost_of(1.25), cost_of(milliseconds)};
    limit_by_power(step, 1, calibration_, costs);
    EXPECT_EQ(costs[0].total > Seconds(1.25e-3), milliseconds == 0.6);
    EXPECT_EQ(costs[1].total, Seconds(1e-3 * milliseconds));
  }
}

// (0.15 + 0.85 * 0.512) / 0.5 of the board's; 0.65 of it by a slow convolution.
TEST_F(StepPower, OfOneKernel) {
  EXPECT_NEAR(power_of_product(product(), 1, calibration_, cost_of(1.25)).value(), 1.1704, 1e-12);
  EXPECT_NEAR(power_of_product(convolution(1'000), 1, calibration_, cost_of(1.25)).value(), 1.1704, 1e-12);
  EXPECT_EQ(power_of_product(convolution(6), 1, calibration_, cost_of(0.6)).value(), 0.65);
  Kernel other;
  other.kind = KernelKind::elementwise;
  EXPECT_FALSE(power_of_product(other, 1, calibration_, cost_of(1)));
}

// Half of 1.9 / 0.65 W for each of 100 SMs of 1 GHz: half of them run, as on a GPU that has no more.
TEST_F(StepPower, SmallBoardsRunFewerSms) {
  gpu_.tdp = Watts(100 * 0.5 * 1.9 / 0.65);
  const double all = beside(KernelKind::elementwise, 3);
  gpu_.sm_count = 50;
  gpu_.math[index_of(MathType::bf16)]->peak = FlopsPerSecond(5e14);
  EXPECT_NEAR(beside(KernelKind::elementwise, 3), all, 1e-3);
  EXPECT_GT(all, 1.25);
}

TEST_F(StepPower, MoreSmsAreNeverSlower) {
  gpu_.tdp = Watts(200);
  sms_are_never_slower(product());
  sms_are_never_slower(convolution(1'000));
}

// Beside 0.25 ms of others: 1 / x * ((0.15 + 0.85 x^3) / 0.5 - 1) = 0.0875.
TEST_F(StepPower, TheMeanIsTheBoards) {
  const double x = 1 / beside(KernelKind::elementwise, 0.25);
  EXPECT_NEAR(((0.15 + 0.85 * x * x * x) / 0.5 - 1) / x, 0.0875, 1e-3);
}

// Faster other kernels slow the products down, by less than they gain.
TEST_F(StepPower, FasterKernelsNeverMakeAStepSlower) {
  double before = 0;
  for (double milliseconds = 0; milliseconds < 1; milliseconds += 0.01) {
    const double step = milliseconds + beside(KernelKind::elementwise, milliseconds);
    EXPECT_GE(step, before - 1e-4) << milliseconds;
    before = step;
  }
}

TEST_F(StepPower, MoreWattsAreNeverSlower) {
  double before = 10;
  for (const double watts : {100.0, 200.0, 300.0, 400.0, 500.0, 800.0}) {
    gpu_.tdp = Watts(watts);
    const double now = beside(KernelKind::elementwise, 0.1);
    EXPECT_LE(now, before) << watts;
    before = now;
  }
  EXPECT_EQ(before, 1.25);
}

}  // namespace
}  // namespace tbdsim
