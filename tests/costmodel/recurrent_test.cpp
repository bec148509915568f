#include "costmodel/families/recurrent.h"

#include <gtest/gtest.h>

namespace tbdsim {
namespace {

using Parameters = std::array<double, kParameterCount<RecurrentFamily>>;
constexpr AchievedFraction<double> kFull{1, 1};

// 1000 flop/s, 100 B/s, no L2, the clock that steps are counted at.
constexpr Hardware kSmall{.sm_count = 1, .peak = 1000, .bandwidth = 100, .l2_bytes = 0, .clock = kStepClock};

// All shares 1; 2 s for each step, 3 s for the call.
Parameters simple() {
  Parameters p;
  p.fill(1);
  p[RecurrentFamily::kForwardStep] = p[RecurrentFamily::kBackwardStep] = 2;
  p[RecurrentFamily::kCall] = 3;
  return p;
}

double seconds(const RecurrentCall& call, const Parameters& p, const Hardware& hardware = kSmall) {
  return kernel_time<RecurrentFamily>(call, hardware, kFull, p).parts.total;
}

// 16 sequences, 4 gates of 5 units: 100 weights. A step computes 2 x 100 x 16 / 1000 = 3.2 s and reads the
// 400 bytes of weights twice, 8 at a time: 8 s; together (3.2^4 + 8^4)^(1/4) = 8.0508 s, and 2 s beside.
TEST(RecurrentTime, StepsFollowOneAnother) {
  const RecurrentCall call{.batch = 16, .steps = 10, .hidden = 5, .gates = 4};
  EXPECT_NEAR(seconds(call, simple()), 3 + 10 * (2 + 8.0508), 1e-3);
}

// At a quarter of the full rate and an efficiency of a half a step computes for 1 + (2 - 1) / 4 of 3.2 s; at
// the full one twice 3.2 s. Without memory's part.
TEST(RecurrentTime, WhatIsNoMultiplicationTakesAsManyClocks) {
  const RecurrentCall call{.batch = 16, .steps = 10, .hidden = 5, .gates = 4};
  Parameters p = simple();
  p[RecurrentFamily::kForward] = 0.5;
  Hardware card = kSmall;
  card.bandwidth = 1e12;
  EXPECT_NEAR(seconds(call, p, card), 10 * (6.4 + 2) + 3, 1e-6);
  card.rate_share = 0.25;
  EXPECT_NEAR(seconds(call, p, card), 10 * (4 + 2) + 3, 1e-6);
}

TEST(RecurrentTime, HalfTheClockDoublesTheStepsOverhead) {
  const RecurrentCall call{.batch = 16, .steps = 10, .hidden = 5, .gates = 4};
  Hardware slow = kSmall;
  slow.clock /= 2;
  EXPECT_NEAR(seconds(call, simple(), slow) - seconds(call, simple()), 20, 1e-9);
}

// Weights of 400 bytes and an L2 of as many: half of them stay there.
TEST(RecurrentTime, WeightsStayInL2) {
  const RecurrentCall call{.batch = 16, .steps = 10, .hidden = 5, .gates = 4};
  Hardware hardware = kSmall;
  hardware.l2_bytes = 400;
  EXPECT_NEAR(kernel_time<RecurrentFamily>(call, hardware, kFull, simple()).parts.memory, 40, 1e-9);
}

TEST(RecurrentTime, TilesOfSequences) {
  EXPECT_EQ(weight_readings(8), 1);
  EXPECT_EQ(weight_readings(16), 2);
  EXPECT_EQ(weight_readings(32), 1);
  EXPECT_EQ(weight_readings(64), 2);
  EXPECT_EQ(weight_readings(128), 1);
}

// 17-32 sequences: 2 x 100 x 32 / 1000 = 6.4 s a step, four times that at a quarter of the peak; 4 s of
// memory.
TEST(RecurrentTime, BatchesAbove16HaveAnEfficiencyOfTheirOwn) {
  Parameters p = simple();
  p[RecurrentFamily::kNarrowBackward] = 0.25;
  const RecurrentCall call{.phase = Phase::backward_data, .batch = 32, .steps = 10, .hidden = 5, .gates = 4};
  const auto parts = kernel_time<RecurrentFamily>(call, kSmall, kFull, p).parts;
  EXPECT_NEAR(parts.compute, 256, 1e-9);
  EXPECT_NEAR(parts.memory, 40, 1e-9);
}

// Gradients of weights are one product over all steps: 2 x 100 x 16 x 10 / 1000 = 32 s, as much again for an
// input as wide as the state.
TEST(RecurrentTime, GradientsOfWeightsAreOneProduct) {
  RecurrentCall call{.phase = Phase::backward_weights, .batch = 16, .steps = 10, .hidden = 5, .gates = 4};
  EXPECT_NEAR(seconds(call, simple()), 3 + 32, 1e-9);
  call.inputs = 5;
  EXPECT_NEAR(seconds(call, simple()), 3 + 64, 1e-9);
}

TEST(RecurrentTime, GrowsWithSizesAndFallsWithRates) {
  Parameters p;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = RecurrentFamily::parameters[i].start;
  const Hardware card{.sm_count = 30, .peak = 1e13, .bandwidth = 5e11, .l2_bytes = 3e6, .clock = 1.5e9};
  for (const Phase phase : {Phase::forward, Phase::backward_data, Phase::backward_weights}) {
    for (const double batch : {4.0, 16.0, 32.0, 64.0, 128.0}) {
      const RecurrentCall call{
          .phase = phase, .batch = batch, .steps = 50, .inputs = 512, .hidden = 1'000, .gates = 3};
      const double time = seconds(call, p, card);
      for (double RecurrentCall::*size :
           {&RecurrentCall::steps, &RecurrentCall::inputs, &RecurrentCall::hidden, &RecurrentCall::gates}) {
        RecurrentCall larger = call;
        larger.*size *= 2;
        EXPECT_GT(seconds(larger, p, card), time);
      }
      for (double Hardware::*rate : {&Hardware::peak, &Hardware::bandwidth, &Hardware::clock}) {
        Hardware faster = card;
        faster.*rate *= 2;
        EXPECT_LE(seconds(call, p, faster), time);
      }
    }
  }
}

}  // namespace
}  // namespace tbdsim
