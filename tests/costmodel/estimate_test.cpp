// Kernel x GPU x profile -> time, by hand.
#include "costmodel/estimate.h"

#include <gmock/gmock.h>

#include "costmodel/families/roofline.h"
#include "costmodel/profile/profile.h"
#include "tests/costmodel/small_gpu.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Kernel kernel(Size flops, Size read, Size written) {
  Kernel made;
  made.kind = KernelKind::gemm;
  made.flops = flops;
  made.read_bytes = read;
  made.written_bytes = written;
  return made;
}

KernelCost cost_on(const GpuSpec& gpu, const Kernel& of, double batch = 1,
                   const Profile& profile = test::small_profile()) {
  return estimate(of, batch, calibration_of(profile, gpu));
}

KernelCost cost(const Kernel& of, double batch = 1) { return cost_on(test::small_gpu(), of, batch); }

// 3000 flop at 1000 flop/s x 0.5 take 6 s; 100 B at 100 B/s x 0.25 take 4 s; the longer counts, and 2 s of
// start-up.
TEST(Roofline, TheLongerOfTwoAndTheStartUp) {
  const RooflineTime<double> time = roofline(3000, 1000, 100, 100, Efficiency<double>{0.5, 0.25, 2});
  EXPECT_DOUBLE_EQ(time.compute_s, 6);
  EXPECT_DOUBLE_EQ(time.memory_s, 4);
  EXPECT_DOUBLE_EQ(time.total_s, 8);
}

// The formula is a template, so that a fit can use it with its own scalar.
TEST(Roofline, AnyScalar) {
  const RooflineTime<long double> time =
      roofline(1000, 1000, 100, 100, Efficiency<long double>{0.5L, 0.25L, 2.0L});
  EXPECT_EQ(time.total_s, 2.0L + 4.0L);  // 2 s computing, 4 s moving
}

// 3000 flop: 6 s. 60 + 40 B: 4 s.
TEST(Estimate, ComputeBound) {
  const KernelCost c = cost(kernel({3000, 0}, {60, 0}, {40, 0}));
  EXPECT_DOUBLE_EQ(c.compute.si(), 6);
  EXPECT_DOUBLE_EQ(c.memory.si(), 4);
  EXPECT_DOUBLE_EQ(c.overhead.si(), 2);
  EXPECT_DOUBLE_EQ(c.total.si(), 8);
  EXPECT_EQ(c.bound, Bound::compute);
  EXPECT_EQ(c.provenance, Provenance::roofline);  // fitted to nothing, measured nowhere
}

// 1500 flop: 3 s. 100 B: 4 s.
TEST(Estimate, MemoryBound) {
  const KernelCost c = cost(kernel({1500, 0}, {60, 0}, {40, 0}));
  EXPECT_DOUBLE_EQ(c.total.si(), 6);
  EXPECT_EQ(c.bound, Bound::memory);
}

// 500 flop: 1 s. 25 B: 1 s. Both below the start-up of 2 s.
TEST(Estimate, OverheadBound) {
  const KernelCost c = cost(kernel({500, 0}, {15, 0}, {10, 0}));
  EXPECT_DOUBLE_EQ(c.total.si(), 3);
  EXPECT_EQ(c.bound, Bound::overhead);
}

TEST(Estimate, NoWorkTakesTheStartUpOnly) {
  const KernelCost c = cost(kernel({}, {}, {}));
  EXPECT_DOUBLE_EQ(c.total.si(), 2);
  EXPECT_DOUBLE_EQ(c.compute.si(), 0);
  EXPECT_DOUBLE_EQ(c.memory.si(), 0);
  EXPECT_EQ(c.bound, Bound::overhead);
}

// 100 + 200 b flop at b = 7: 1500 flop, 3 s; 5 + 10 b + 5 b = 110 B: 4.4 s.
TEST(Estimate, SizesGrowWithTheBatch) {
  const KernelCost c = cost(kernel({100, 200}, {5, 10}, {0, 5}), 7);
  EXPECT_DOUBLE_EQ(c.compute.si(), 3);
  EXPECT_DOUBLE_EQ(c.memory.si(), 4.4);
  EXPECT_DOUBLE_EQ(c.total.si(), 6.4);
}

// fp16 runs at 4000 flop/s: 1.5 s instead of 6 s.
TEST(Estimate, ArithmeticHasItsOwnPeak) {
  Kernel half = kernel({3000, 0}, {}, {});
  half.math = MathType::fp16;
  EXPECT_DOUBLE_EQ(cost(half).compute.si(), 1.5);
}

// A card that stores fp16 but computes in fp32 (TITAN Xp) takes its fp32 rate.
TEST(Estimate, ComputedInAnotherType) {
  GpuSpec gpu = test::small_gpu();
  gpu.math[index_of(MathType::fp16)].reset();
  gpu.computes_in[index_of(MathType::fp16)] = MathType::fp32;
  Kernel half = kernel({3000, 0}, {}, {});
  half.math = MathType::fp16;
  EXPECT_DOUBLE_EQ(cost_on(gpu, half).compute.si(), 6);
}

TEST(Estimate, UnknownArithmeticIsAnError) {
  Kernel bf16 = kernel({3000, 0}, {}, {});
  bf16.math = MathType::bf16;
  EXPECT_THAT([&] { (void)cost(bf16); },
              ThrowsMessage<UsageError>(
                  HasSubstr("Small GPU has no bf16 arithmetic; expected one of its own: fp32, fp16")));
}

// Each kind has its own efficiencies.
TEST(Estimate, EfficiencyOfTheKernelsKind) {
  Profile profile = test::small_profile();
  profile.kinds[index_of(KernelKind::convolution)] = {.compute = 1, .bandwidth = 1, .overhead_s = 0.5};
  Kernel conv = kernel({3000, 0}, {60, 0}, {40, 0});
  conv.kind = KernelKind::convolution;
  EXPECT_DOUBLE_EQ(cost_on(test::small_gpu(), conv, 1, profile).total.si(), 3.5);
}

TEST(Estimate, OneCostForEachKernelOfAStep) {
  TrainingStep step;
  step.kernels = {kernel({3000, 0}, {}, {}), kernel({500, 0}, {}, {})};
  step.kernels[0].repeat = 10;  // a cost is of one execution
  const Profile profile = test::small_profile();
  const GpuSpec gpu = test::small_gpu();
  const auto costs = estimate(step, 1, calibration_of(profile, gpu));
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_DOUBLE_EQ(costs[0].total.si(), 8);
  EXPECT_DOUBLE_EQ(costs[1].total.si(), 3);
}

TEST(Names, OfBoundsAndProvenances) {
  EXPECT_EQ(name_of(Bound::memory), "memory");
  EXPECT_EQ(name_of(Provenance::roofline), "roofline");
  EXPECT_EQ(name_of(Provenance::measured), "measured");
}

// 80 B over a bus that achieves half of 40 B/s: a quarter of that is the profile's, 16 s, and 2 s of
// start-up.
TEST(Estimate, TransfersPassTheBus) {
  GpuSpec gpu = test::small_gpu();
  gpu.bus.bandwidth = BytesPerSecond(40);
  gpu.bus.efficiency = 0.5;
  Kernel copy = kernel({}, fixed_size(80), {});
  copy.kind = KernelKind::transfer;
  EXPECT_DOUBLE_EQ(cost_on(gpu, copy).total.si(), 16 + 2);
}

}  // namespace
}  // namespace tbdsim
