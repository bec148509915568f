#include "costmodel/families/persistent_recurrent.h"

#include <gtest/gtest.h>

#include "costmodel/families/families.h"
#include "costmodel/model_of_kernel.h"
#include "tests/costmodel/recurrent_block.h"

namespace tbdsim {
namespace {

using Family = PersistentRecurrentFamily;
using Parameters = std::array<double, kParameterCount<Family>>;
constexpr AchievedFraction<double> kFull{1, 1};
// The clock that steps are counted at, and 4e12 flop/s, 2,857 for each clock.
constexpr Hardware kSmall{.sm_count = 1, .peak = 4e12, .bandwidth = 100, .clock = kStepClock};

// 2 s for each step, 3 s for the call; forward 0.5 s for each sixteen sequences and 0.1 s for each of their
// units, backward 1 s and 0.2 s; products at the peak.
Parameters simple() {
  Parameters p{};
  p[Family::kForwardStep] = p[Family::kBackwardStep] = 2;
  p[Family::kForwardPass] = 0.5;
  p[Family::kForwardUnit] = 0.1;
  p[Family::kBackwardPass] = 1;
  p[Family::kBackwardUnit] = 0.2;
  p[Family::kProduct] = 1;
  p[Family::kCall] = 3;
  return p;
}

double seconds(const RecurrentCall& call, const Hardware& hardware = kSmall) {
  return kernel_time<Family>(call, hardware, kFull, simple()).parts.total;
}

// Ten steps of five units: 2 + (0.5 + 5 * 0.1) = 3 s each for up to 16 sequences, 2 + 4 * 1 = 6 s for 64.
TEST(PersistentRecurrentTime, SixteenSequencesAtATime) {
  RecurrentCall call{.batch = 16, .steps = 10, .hidden = 5};
  EXPECT_NEAR(seconds(call), 33, 1e-9);
  call.batch = 8;
  EXPECT_NEAR(seconds(call), 33, 1e-9);
  call.batch = 64;
  EXPECT_NEAR(seconds(call), 63, 1e-9);
  call.phase = Phase::backward_data;  // 2 + 4 * (1 + 5 * 0.2)
  EXPECT_NEAR(seconds(call), 103, 1e-9);
}

// At half the clock steps take twice 3 s. 1e10 inputs: 2 * 4 * 5 * 1e10 * 16 * 10 = 6.4e13 flop, 16 s.
TEST(PersistentRecurrentTime, ClocksOfStepsAndOneInputProduct) {
  RecurrentCall call{.batch = 16, .steps = 10, .hidden = 5};
  Hardware slow = kSmall;
  slow.clock /= 2;
  EXPECT_NEAR(seconds(call, slow), 63, 1e-9);
  call.inputs = 1e10;
  EXPECT_NEAR(seconds(call), 33 + 16, 1e-9);
}

// 512 operations a clock instead of 2,539.5: 2 * 4 * 5^2 * 16 * 10 = 32,000 flop take 32,000 * (1 / 512 - 1 /
// 2,539.5) = 49.9 clocks longer.
TEST(PersistentRecurrentTime, SlowerProducts) {
  const RecurrentCall call{.batch = 16, .steps = 10, .hidden = 5};
  Hardware half = kSmall;
  half.peak = 512 * half.clock;
  EXPECT_EQ(Family::slower_products(call, kSmall), 0);
  EXPECT_NEAR(Family::slower_products(call, half) * half.clock, 49.899, 1e-3);
}

// PyTorch's rule: LSTMs in half precision of up to 128 sequences and 1,024 units, sizes in 128s, one layer.
TEST(PersistentKernel, FitsSomeLayers) {
  const RecurrentCall fits{
      .batch = 64, .steps = 25, .inputs = 512, .hidden = 512, .gates = 4, .element_bytes = 2};
  EXPECT_TRUE(fits_persistent_kernel(fits));
  EXPECT_TRUE(belongs_to<Family>(fits));
  EXPECT_FALSE(belongs_to<RecurrentFamily>(fits));
  EXPECT_TRUE(belongs_to<RecurrentFamily>(RecurrentCall{}));
  const auto with = [&](auto change) {
    RecurrentCall call = fits;
    change(call);
    return fits_persistent_kernel(call);
  };
  EXPECT_TRUE(with([](RecurrentCall& c) { c.batch = 128; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.batch = 129; }));
  EXPECT_TRUE(with([](RecurrentCall& c) { c.batch = 7; }));
  EXPECT_TRUE(with([](RecurrentCall& c) { c.hidden = 1'024; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.hidden = 1'152; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.hidden = 500; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.inputs = 500; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.inputs = 0; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.gates = 3; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.element_bytes = 4; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.alone = false; }));
  EXPECT_FALSE(with([](RecurrentCall& c) { c.phase = Phase::backward_weights; }));
}

// One kernel takes the layer in fp16 where the profile has such kernels and the GPU 98 multiprocessors of
// Ampere or later, but for 8.6; elsewhere it is products of a step.
TEST(PersistentKernel, RunsWhereTheProfileHasItAndTheWeightsFit) {
  const RecurrentCall fits{.batch = 64, .inputs = 512, .hidden = 512, .element_bytes = 2};
  GpuSpec gpu = test::small_gpu();
  gpu.sm_count = 98;
  gpu.compute_capability = 8;
  Profile profile = test::with_blocks({test::recurrent_block("cudnn9", MathType::fp16)});
  const auto one_kernel = [&](MathType math = MathType::fp16) {
    const Calibration calibration = calibration_of(profile, gpu);
    const bool persistent = gives_time<Family>(fits, math, calibration);
    EXPECT_NE(gives_time<RecurrentFamily>(fits, math, calibration), persistent);
    return persistent;
  };
  EXPECT_FALSE(one_kernel());
  ProfileBlock block = test::recurrent_block("cudnn9", MathType::fp16);
  block.parameters.assign(kParameterCount<Family>, 1);
  profile.families[index_of_family<Family>()] = {block};
  EXPECT_TRUE(one_kernel());
  EXPECT_FALSE(one_kernel(MathType::bf16));
  for (const double capability : {7.0, 7.5, 8.6}) {
    gpu.compute_capability = capability;
    EXPECT_FALSE(one_kernel()) << capability;
  }
  for (const double capability : {8.9, 9.0, 12.0}) {
    gpu.compute_capability = capability;
    EXPECT_TRUE(one_kernel()) << capability;
  }
  gpu.sm_count = 97;
  EXPECT_FALSE(one_kernel());
}

}  // namespace
}  // namespace tbdsim
