// The data sheet as the formulas need it.
#include "costmodel/hardware.h"

#include <cmath>

#include <gtest/gtest.h>

#include "costmodel/power.h"
#include "hwspecs/base/catalog.h"

namespace tbdsim {
namespace {

GpuSpec gpu(const std::string& name) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  return read_gpu(catalog.find(Kind::gpu, name), catalog);
}

TEST(HardwareOf, TakesTheRatesOfTheArithmetic) {
  const Hardware h = hardware_of(gpu("v100_sxm2_16gb"), MathType::fp16);
  EXPECT_EQ(h.sm_count, 80);
  EXPECT_TRUE(h.tensor_cores);
  EXPECT_TRUE(h.hbm);
  EXPECT_EQ(h.compute_capability, 70);
  EXPECT_FALSE(hardware_of(gpu("v100_sxm2_16gb"), MathType::fp32).tensor_cores);
  EXPECT_FALSE(hardware_of(gpu("titanxp"), MathType::fp32).hbm);
}

// A TITAN Xp computes fp16 in fp32.
TEST(HardwareOf, ComputedInAnotherType) {
  EXPECT_EQ(hardware_of(gpu("titanxp"), MathType::fp16).peak,
            hardware_of(gpu("titanxp"), MathType::fp32).peak);
}

TEST(HardwareOf, UnknownArithmeticIsAnError) {
  EXPECT_THROW((void)hardware_of(gpu("titanxp"), MathType::tf32), UsageError);
}

TEST(ExpectedClock, BigCardsHoldTheirClock) {
  EXPECT_EQ(expected_clock(gpu("titanxp"), MathType::fp32).mean, 0.92);
  EXPECT_EQ(expected_clock(gpu("k80"), MathType::fp32).mean, 0.40);
  EXPECT_EQ(expected_clock(gpu("rtx2080ti"), MathType::fp32).mean, 1.0);
}

// 57 Gflop/J x 70 W = 3.99 Tflop/s of the 8.1 a T4 is quoted with.
TEST(ExpectedClock, PowerHoldsSmallOnes) {
  const GpuSpec t4 = gpu("t4");
  const double peak = rate_of(t4, MathType::fp32).peak.si();
  EXPECT_NEAR(expected_clock(t4, MathType::fp32).mean, 57e9 * 70 / peak, 1e-9);
  EXPECT_LT(expected_clock(t4, MathType::fp32).mean, 0.6);
}

// 128 lanes and four instructions a clock: 0.85 of 0.92, of 1 for a GeForce card; not where half of the lanes
// are fp32's (A100), where two instructions start at once (Pascal) or tensor cores multiply.
TEST(ExpectedClock, LanesWaitForInstructions) {
  EXPECT_NEAR(expected_clock(gpu("h100_sxm"), MathType::fp32).mean, 0.85 * 0.92, 1e-12);
  EXPECT_NEAR(expected_clock(gpu("rtx3060"), MathType::fp32).mean, 0.85, 1e-12);
  EXPECT_EQ(expected_clock(gpu("a100_sxm_80gb"), MathType::fp32).mean, 0.92);
  EXPECT_EQ(expected_clock(gpu("p100_pcie"), MathType::fp32).mean, 0.92);
  EXPECT_EQ(expected_clock(gpu("h100_sxm"), MathType::bf16).mean, 0.92);
}

// An L4's 72 W allow 126 GFLOP/J of the 30.3 TFLOP/s: 0.30, less than instructions do. The limit is relative
// to 0.92 * 0.85, which few busy SMs reach.
TEST(ExpectedClock, PowerOrInstructionsWhicheverIsLess) {
  const GpuSpec l4 = gpu("l4");
  const double cap = 126e9 * 72 / rate_of(l4, MathType::fp32).peak.si();
  EXPECT_NEAR(expected_clock(l4, MathType::fp32).mean, cap, 1e-9);
  EXPECT_NEAR(lane_limit(l4).clock_share, cap / (0.92 * 0.85), 1e-9);
}

// 126 Gflop/J x 300 W = 37.8 Tflop/s of the 90.5 an L40 is quoted with, 77 x 350 = 26.95 of an RTX
// 3090's 35.6; an RTX 3060's 77 x 170 = 13.1 are more than its 12.7, of which instructions leave 0.85.
TEST(ExpectedClock, PowerHoldsGraphicsSmsOnLargeBoards) {
  const auto sustained = [](const char* name) {
    const GpuSpec card = gpu(name);
    return expected_clock(card, MathType::fp32).mean * rate_of(card, MathType::fp32).peak.si();
  };
  EXPECT_NEAR(sustained("l40"), 37.8e12, 1e6);
  EXPECT_NEAR(sustained("rtx3090"), 26.95e12, 1e6);
  EXPECT_NEAR(expected_clock(gpu("h100_pcie"), MathType::fp32).mean, 0.85 * 0.92, 1e-12);
  EXPECT_EQ(expected_clock(gpu("a100_pcie_40gb"), MathType::fp32).mean, 0.92);
  GpuSpec measured = gpu("rtx3090");
  measured.sustained_share = 0.95;
  EXPECT_EQ(expected_clock(measured, MathType::fp32).mean, 0.95);
}

// A measured GEMM replaces the rule, 0.92 for this one.
TEST(ExpectedClock, OfAMeasuredProduct) {
  GpuSpec p4000 = gpu("p4000");
  EXPECT_EQ(expected_clock(p4000, MathType::fp32).mean, 0.784);
  p4000.sustained_share.reset();
  EXPECT_EQ(expected_clock(p4000, MathType::fp32).mean, 0.92);
}

// 0.15 of the power does not follow the clock.
double clock_at(double watts) { return std::cbrt((watts - 0.15) / 0.85); }

// An A100 on PCIe has 250 W where the SXM board has 400 W: the cube root of 0.475 / 0.85.
TEST(PowerShare, OfBoardsWithLessPower) {
  EXPECT_NEAR(power_share(gpu("a100_pcie_40gb"), MathType::fp16), clock_at(250 / (108 * 1.41) / 2.63), 1e-9);
  EXPECT_NEAR(power_share(gpu("a100_pcie_40gb"), MathType::fp16), 0.823, 0.002);
  EXPECT_NEAR(power_share(gpu("a100_sxm_80gb"), MathType::fp16), 1, 0.002);
  EXPECT_NEAR(power_share(gpu("l40s"), MathType::bf16), clock_at(350 / (142 * 2.52) / 1.39), 1e-9);
  EXPECT_NEAR(power_share(gpu("rtx4090"), MathType::bf16), 1, 0.002);
  EXPECT_EQ(power_share(gpu("titanxp"), MathType::fp16), 1) << "no two boards to compare";
}

// Tensor cores draw less for an operation than fp32 lanes: a T4 has 0.66 of its peak in half precision by the
// watts of an RTX 2080 Ti, 2.38 for each SM and GHz (DeepBench: 0.65), and 0.49 in fp32; an L4 0.64 and 0.30.
TEST(ExpectedClock, OfTensorCoresOnSmallBoards) {
  EXPECT_NEAR(expected_clock(gpu("t4"), MathType::fp16).mean, 0.92 * clock_at(70 / (40 * 1.59) / 2.38), 1e-9);
  EXPECT_NEAR(expected_clock(gpu("t4"), MathType::fp16).mean, 0.651, 0.02);
  EXPECT_NEAR(expected_clock(gpu("l4"), MathType::bf16).mean, 0.92 * clock_at(72 / (58 * 2.04) / 1.39), 1e-9);
}

// Less than what the board of a generation with the least has; Blackwell's two sorts of SM apart.
TEST(PowerShare, OfLimitedBlackwellBoards) {
  GpuSpec b200 = gpu("b200");
  EXPECT_NEAR(power_share(b200, MathType::bf16), 1, 0.001);
  b200.tdp = Watts(500);
  EXPECT_NEAR(power_share(b200, MathType::bf16), clock_at(0.5), 0.001);
  for (const char* name : {"gb200", "b300", "gb300", "rtx_pro_6000", "rtx_pro_6000_maxq", "rtx5090"})
    EXPECT_NEAR(power_share(gpu(name), MathType::bf16), 1, 0.001) << name;
}

TEST(PowerRatio, OfTheWatts) {
  EXPECT_EQ(power_ratio(gpu("h100_sxm"), 700), 1);
  EXPECT_EQ(power_ratio(gpu("h100_sxm"), 0), 1);
  EXPECT_NEAR(power_ratio(gpu("h100_sxm"), 1'400), clock_at(0.5), 1e-12);
  EXPECT_GT(power_ratio(gpu("h100_sxm"), 1e6), 0) << "no clock stops";
}

// Below 0.225 of the power at the whole clock only so many SMs run as have that: half of it feeds half of
// them.
TEST(ClockOfPower, FallsNoFasterThanThePower) {
  EXPECT_NEAR(clock_of_power(0.225, 1), clock_at(0.225), 1e-12);
  EXPECT_NEAR(clock_of_power(0.1125, 1), clock_at(0.225) / 2, 1e-12);
}

// An A100 SXM has 400 W for 108 SMs of 1.41 GHz and would draw 5.87 W each at the whole clock; an H100 8.15.
// An L40S has half of the rate of an SM of its generation and draws half of what that would, an RTX 4090 a
// quarter, for which its board has power to spare.
TEST(PowerOverProducts, OfProductsThatRunWithoutAPause) {
  const auto clock = [](const char* name, MathType math) {
    return clock_of_power(power_over_products(gpu(name), math), 1);
  };
  EXPECT_NEAR(clock("a100_sxm_80gb", MathType::bf16), clock_at(400 / (108 * 1.41) / 5.87), 1e-4);
  EXPECT_NEAR(clock("h100_sxm", MathType::bf16), clock_at(700 / (132 * 1.83) / 8.15), 1e-4);
  EXPECT_NEAR(clock("l40s", MathType::bf16), clock_at(350 / (142 * 2.52) / (8.15 / 4)), 1e-3);
  EXPECT_GT(clock("rtx4090", MathType::bf16), 1);
  EXPECT_NEAR(clock("v100_sxm2_16gb", MathType::fp16), clock_at(300 / (80 * 1.53) / 5.87), 1e-3);
  EXPECT_LT(clock("quadro_rtx8000", MathType::fp16), 0.7);
  EXPECT_GT(clock("rtx2080ti", MathType::fp16), 0.9) << "half of the operations draw half of the power";
  EXPECT_TRUE(std::isinf(power_over_products(gpu("h100_sxm"), MathType::fp32))) << "no tensor cores";
}

// Operations a second in a run without a pause: more of anything never lowers them, and more watts raise
// them.
TEST(PowerOverProducts, OfMoreOfAnything) {
  const auto sustained = [](const GpuSpec& card) {
    return rate_of(card, MathType::bf16).peak.si() *
           clock_of_power(power_over_products(card, MathType::bf16), 1);
  };
  const GpuSpec b200 = gpu("b200");
  GpuSpec more = b200;
  more.tdp = b200.tdp * 1.1;
  EXPECT_GT(sustained(more), 1.03 * sustained(b200));
  for (const double watts : {250.0, 500.0, 1'000.0, 2'000.0}) {
    more = b200;
    more.tdp = Watts(watts);
    double least = 0;
    for (const int sms : {37, 74, 148, 296}) {
      more.sm_count = sms;
      more.math[index_of(MathType::bf16)]->peak = rate_of(b200, MathType::bf16).peak * (sms / 148.0);
      const double now = sustained(more);
      EXPECT_GE(now, least * (1 - 1e-12)) << sms << " SMs on " << watts << " W";
      least = now;
    }
  }
}

TEST(InstructionsOf, BlackwellHasTwo) {
  EXPECT_EQ(instructions_of(gpu("b300")), "blackwell");
  EXPECT_EQ(instructions_of(gpu("rtx5090")), "rtx_blackwell");
  EXPECT_EQ(instructions_of(gpu("rtx3090")), "ampere");
}

TEST(TileLoss, OfKernelsOlderThanAsynchronousCopies) {
  EXPECT_EQ(tile_loss(gpu("a100_sxm_80gb"), 7.5), 2.0 / 3);
  EXPECT_EQ(tile_loss(gpu("rtx3090"), 7.0), 2.0 / 3);
  EXPECT_EQ(tile_loss(gpu("a100_sxm_80gb"), 8.0), 1) << "measured on an Ampere GPU";
  EXPECT_EQ(tile_loss(gpu("a100_sxm_80gb"), 0), 1) << "not known";
  EXPECT_EQ(tile_loss(gpu("rtx2080ti"), 7.0), 1);
}

TEST(InstructionShare, OfOlderKernelsOnHopperAndLater) {
  EXPECT_EQ(instruction_share(gpu("h100_sxm"), 8.0), 0.62);
  EXPECT_EQ(instruction_share(gpu("h100_sxm"), 0), 0.62) << "not known";
  EXPECT_EQ(instruction_share(gpu("h100_pcie"), 9.0), 1) << "measured on a Hopper GPU";
  EXPECT_EQ(instruction_share(gpu("b200"), 9.0), 1) << "groups of warps";
  EXPECT_EQ(instruction_share(gpu("gb200"), 10.0), 1);
  EXPECT_EQ(instruction_share(gpu("a100_sxm_80gb"), 7.0), 1);
  EXPECT_EQ(instruction_share(gpu("rtx_pro_6000"), 8.0), 1) << "whose instructions are those of 8.x";
}

// The clock is that of the product line; a card's title is for readers.
TEST(ExpectedClock, OfTheProductLineNotTheTitle) {
  GpuSpec card = gpu("gtx1080ti");
  EXPECT_EQ(expected_clock(card, MathType::fp32).mean, 1);
  card.title = "A card";
  EXPECT_EQ(expected_clock(card, MathType::fp32).mean, 1);
  card.product_line = ProductLine::workstation;
  card.title = "NVIDIA GeForce GTX 1080 Ti";
  EXPECT_EQ(expected_clock(card, MathType::fp32).mean, 0.92);
}

// GeForce cards sum in fp32 at half the rate, chips of 8.6 and 8.9 have half the rate of an A100's.
TEST(RateShare, OfTheGenerationsFullRate) {
  EXPECT_EQ(rate_share(gpu("a100_sxm_80gb"), MathType::bf16), 1);
  EXPECT_EQ(rate_share(gpu("a100_sxm_80gb"), MathType::tf32), 1);
  EXPECT_EQ(rate_share(gpu("l40s"), MathType::bf16), 0.5);
  EXPECT_EQ(rate_share(gpu("rtx3090"), MathType::fp16), 0.25);
  EXPECT_EQ(rate_share(gpu("rtx3090"), MathType::tf32), 0.25);
  EXPECT_EQ(rate_share(gpu("rtx2080ti"), MathType::fp16), 0.5);
  EXPECT_EQ(rate_share(gpu("h100_sxm"), MathType::fp8), 1);
  EXPECT_EQ(rate_share(gpu("b200"), MathType::fp4), 1);
  EXPECT_EQ(rate_share(gpu("b200"), MathType::fp16), 1);
  for (const char* name : {"rtx3090", "k80", "h200"}) EXPECT_EQ(rate_share(gpu(name), MathType::fp32), 1);
}

TEST(Tf32AcrossK, OfHopper) {
  EXPECT_EQ(tf32_across_k(gpu("h200")), 0.62);
  EXPECT_EQ(tf32_across_k(gpu("b200")), 1);
  EXPECT_EQ(tf32_across_k(gpu("a100_sxm_80gb")), 1);
}

}  // namespace
}  // namespace tbdsim
