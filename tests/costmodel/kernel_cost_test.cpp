// Costs of kernels and of steps by the block that was chosen: residuals, intervals, provenance, workspace.
#include <cmath>

#include <gmock/gmock.h>

#include "costmodel/hardware.h"
#include "hwspecs/base/catalog.h"
#include "tests/costmodel/recurrent_block.h"

namespace tbdsim {
namespace {

using test::recurrent_block;
using test::recurrent_kernel;
using test::two_seconds;
using test::with_blocks;
using test::with_residual;

KernelCost cost(const Profile& profile, MathType math = MathType::fp32) {
  const GpuSpec gpu = test::small_gpu();
  return estimate(recurrent_kernel(math), 1, calibration_of(profile, gpu));
}

constexpr MathType kHalf = MathType::fp16;
constexpr MathType kSingle = MathType::fp32;

// 2000 flop at 1000 flop/s.
TEST(Estimate, ByAFamilysFormula) {
  const KernelCost c = cost(with_blocks({recurrent_block()}));
  EXPECT_DOUBLE_EQ(c.total.si(), 2);
  EXPECT_EQ(c.algorithm, Algorithm::recurrent);
  EXPECT_EQ(c.bound, Bound::compute);
}

// A clock of 0.9 times what 250 W let expect, 0.92.
TEST(Estimate, AClockBesideTheExpectedOne) {
  ProfileBlock block = recurrent_block("cudnn6", kSingle, false);
  block.clock = 0.9;
  block.clock_of_expected = true;
  const Profile profile = with_blocks({block});
  GpuSpec gpu = test::small_gpu();
  gpu.tdp = Watts(250);
  EXPECT_NEAR(estimate(recurrent_kernel(), 1, calibration_of(profile, gpu)).total.si(), 2 / (0.9 * 0.92),
              1e-12);
}

// The formula, times exp of the residual's share 0.09 / 0.0916 (residual_table_test).
TEST(Estimate, MeasuredCallsCorrectTheFormula) {
  const KernelCost c = cost(with_blocks({with_residual(recurrent_block(), two_seconds(), 0.1)}));
  constexpr double kSixDigits = 1e-6;  // residuals are looked up in single precision
  EXPECT_NEAR(c.total.si() / (2 * std::exp(0.1 * 0.09 / 0.0916)), 1, kSixDigits);
  EXPECT_DOUBLE_EQ(c.compute.si(), c.total.si());
  EXPECT_NEAR(c.sd / std::sqrt(0.0916 - 0.09 * 0.09 / 0.0916), 1, kSixDigits);
  EXPECT_DOUBLE_EQ(c.factor(), std::exp(1.2816 * c.sd));
}

// Intervals twice as wide as a normal distribution has them.
TEST(Estimate, IntervalsAreAsWideAsThoseOfCallsLeftOut) {
  ProfileBlock block = recurrent_block();
  block.interval = 2 * kEightyPercent;
  EXPECT_DOUBLE_EQ(cost(with_blocks({block})).sd, 2 * std::hypot(0.3, 0.04));
}

// A clock that is not the card's own is not known: 3-4-5.
TEST(Estimate, AnUnknownClockWidensTheInterval) {
  ProfileBlock block = recurrent_block("cudnn6", kSingle, false);
  block.kriging = {.amplitude = 0.3, .length = 1, .nugget = 0};
  block.clock_sd = 0.4;
  EXPECT_NEAR(cost(with_blocks({block})).sd, 0.5, 1e-12);
  block.own = true;
  EXPECT_NEAR(cost(with_blocks({block})).sd, 0.3, 1e-12);
}

TEST(Provenance, FromSurestToLeastSure) {
  RecurrentCall near = two_seconds();
  near.steps = 3;  // 0.15 log2(3 / 2) = 0.09 away
  RecurrentCall far = two_seconds();
  far.hidden = 8000;
  const auto of = [](const RecurrentCall& measured, bool own) {
    return cost(with_blocks({with_residual(recurrent_block("cudnn6", kSingle, own), measured, 0.1)}))
        .provenance;
  };
  EXPECT_EQ(of(two_seconds(), true), Provenance::measured);
  EXPECT_EQ(of(near, true), Provenance::interpolated);
  EXPECT_EQ(of(two_seconds(), false), Provenance::transferred);
  EXPECT_EQ(of(near, false), Provenance::transferred);
  EXPECT_EQ(of(far, true), Provenance::modelled);
  EXPECT_EQ(of(far, false), Provenance::modelled);
  EXPECT_EQ(cost(with_blocks({})).provenance, Provenance::roofline);
}

// fp16 by a block of fp32: the same shape was measured, but not this arithmetic. 2000 flop at 4000 flop/s.
TEST(Provenance, AnotherPrecisionIsAModel) {
  const Profile profile = with_blocks({with_residual(recurrent_block(), two_seconds(), 0)});
  const KernelCost exact = cost(profile), other = cost(profile, kHalf);
  EXPECT_DOUBLE_EQ(other.total.si(), 0.5);
  EXPECT_EQ(other.provenance, Provenance::modelled);
  EXPECT_NEAR(other.sd, std::hypot(exact.sd, 0.2), 1e-12);
}

// 0.18 of the variance are common to a kind. gemm: 2 x 3 s x 0.2 = 1.2 s and 3 s x 0.6 = 1.8 s, together
// 3 s; element-wise: 8 s x 0.5 = 4 s. 0.18 (9 + 16) + 0.82 (1.44 + 3.24 + 16), of 17 s.
TEST(CombinedSd, PartlyAddsWithinAKindAndInSquaresBetweenKinds) {
  const auto kernel = [](KernelKind kind, std::int64_t repeat) {
    Kernel made;
    made.kind = kind;
    made.repeat = repeat;
    return made;
  };
  const auto costing = [](double seconds, double sd) {
    KernelCost made{.compute = {}, .memory = {}, .overhead = {}, .total = Seconds(seconds), .workspace = {}};
    made.sd = sd;
    return made;
  };
  TrainingStep step;
  step.kernels = {kernel(KernelKind::gemm, 2), kernel(KernelKind::gemm, 1),
                  kernel(KernelKind::elementwise, 1)};
  EXPECT_NEAR(
      combined_sd(step, kernel_runs(step.kernels), {costing(3, 0.2), costing(3, 0.6), costing(8, 0.5)}),
      std::sqrt(0.18 * 25 + 0.82 * (1.44 + 3.24 + 16)) / 17, 1e-12);
  EXPECT_EQ(combined_sd({}, {}, {}), 0);
}

// Layers repeat, so a step costs each call once; what it says is what each kernel alone costs.
TEST(Estimate, OfAStepAsOfItsKernels) {
  const Profile profile = with_blocks({with_residual(recurrent_block(), two_seconds(), 0.1)});
  const GpuSpec gpu = test::small_gpu();
  const Calibration calibration = calibration_of(profile, gpu);
  Kernel gather, update;  // neither has a block; both are the same call
  gather.kind = KernelKind::gather;
  update.kind = KernelKind::update;
  TrainingStep step;
  step.kernels = {recurrent_kernel(), gather, recurrent_kernel(kHalf), recurrent_kernel(), update};
  const auto costs = estimate(step, 1, calibration);
  ASSERT_EQ(costs.size(), step.kernels.size());
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const KernelCost alone = estimate(step.kernels[k], 1, calibration);
    EXPECT_EQ(costs[k].total, alone.total) << k;
    EXPECT_EQ(costs[k].provenance, alone.provenance) << k;
  }
}

// An algorithm that needs more scratch memory than a framework allows is not taken.
TEST(Estimate, WorkspaceWithinTheFrameworksLimit) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const GpuSpec gpu = read_gpu(catalog.find(Kind::gpu, "titanxp"), catalog);
  ProfileBlock block;
  block.generation = "cudnn6";
  block.own = true;
  for (const Parameter& parameter : ConvFamily::parameters) block.parameters.push_back(parameter.start);
  Profile profile = test::small_profile();
  profile.families[index_of_family<ConvFamily>()] = {block};
  Kernel conv;
  conv.kind = KernelKind::convolution;
  conv.shape = ConvShape{.images = {0, 1},
                         .channels = 256,
                         .height = 28,
                         .width = 28,
                         .filters = 256,
                         .out_height = 28,
                         .out_width = 28,
                         .kernel_height = 3,
                         .kernel_width = 3,
                         .pad_height = 1,
                         .pad_width = 1};
  const KernelCost free = estimate(conv, 64, calibration_of(profile, gpu));
  ASSERT_GT(free.workspace.si(), 0) << name_of(free.algorithm);
  const Bytes limit = free.workspace * 0.5;
  const KernelCost limited = estimate(conv, 64, calibration_of(profile, gpu, {}, {limit.si()}));
  EXPECT_LE(limited.workspace.si(), limit.si());
  EXPECT_GT(limited.total, free.total);
  EXPECT_NE(limited.algorithm, free.algorithm);
}

}  // namespace
}  // namespace tbdsim
