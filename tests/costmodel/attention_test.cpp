// Attention in one kernel: blocks, products and softmax by hand, and its cost in a step.
#include "costmodel/families/attention.h"

#include <cmath>

#include <gmock/gmock.h>

#include "costmodel/estimate.h"
#include "tests/costmodel/small_gpu.h"

namespace tbdsim {
namespace {

// 10 SMs of 1 GHz with 1,024 operations a clock each; 100 GB/s.
constexpr Hardware kCard{
    .sm_count = 10, .peak = 10.24e12, .bandwidth = 100e9, .clock = 1e9, .tensor_cores = true};

// 12 heads of 256 queries and 200 keys of 64 features: 24 blocks, 3 on the fullest SM, that read 4 * 64 keys.
AttentionCall call(Phase phase = Phase::forward) {
  return {
      .phase = phase, .heads = 12, .queries = 256, .keys = 200, .features = 64, .values = 64, .bytes = 1e5};
}

double compute(const AttentionCall& c, const Hardware& hardware = kCard) {
  return attention_time(c, hardware, 1).compute;
}

// A score: 2 * 128 operations at 0.9 * 1,024 a clock, 8 instructions at 128.
TEST(Attention, ForwardByBlocksOfQueries) {
  const double score = 256 / (0.9 * 1.024e12) + 8 / 128e9;
  const TimeParts<double> time = attention_time(call(), kCard, 1);
  EXPECT_DOUBLE_EQ(time.compute, 3 * 128 * 256 * score);
  EXPECT_DOUBLE_EQ(time.memory, 1e5 / 80e9);
  EXPECT_DOUBLE_EQ(time.total, 5e-6 + std::hypot(time.compute, time.memory));
  EXPECT_EQ(attention_flops(call()), 12.0 * 256 * 200 * 256);
}

// 12 * 2 blocks of 128 keys over 256 queries; 2 * (3 + 2) * 64 operations at 0.7, 16 instructions.
TEST(Attention, BackwardByBlocksOfKeys) {
  const double score = 640 / (0.7 * 1.024e12) + 16 / 128e9;
  EXPECT_DOUBLE_EQ(compute(call(Phase::backward_data)), 3 * 128 * 256 * score);
  EXPECT_EQ(attention_flops(call(Phase::backward_data)), 12.0 * 256 * 200 * 640);
}

// Half of the scores, and half of the block on the diagonal: (256 + 128) / 2 instead of 256.
TEST(Attention, CausalComputesHalf) {
  AttentionCall causal = call();
  causal.causal = true;
  EXPECT_DOUBLE_EQ(compute(causal) / compute(call()), 192.0 / 256);
  EXPECT_EQ(attention_flops(causal), attention_flops(call()) / 2);
}

// Products warp by warp reach 0.62 of Hopper's 4,096 operations a clock, on later cards too.
TEST(Attention, ProductsWarpByWarp) {
  Hardware hopper = kCard;
  hopper.peak = 10 * 4'096e9;
  Hardware blackwell = kCard;
  blackwell.peak = 10 * 8'192e9;
  EXPECT_EQ(compute(call(), hopper), compute(call(), blackwell));
  EXPECT_LT(compute(call(), hopper), compute(call()));
}

TEST(Attention, MoreOfAnythingIsNeverSlowerAndMoreWorkNeverFaster) {
  for (const Phase phase : {Phase::forward, Phase::backward_data}) {
    double before = attention_time(call(phase), kCard, 1).total;
    for (const int sms : {11, 12, 16, 24, 100}) {
      Hardware more = kCard;
      more.sm_count = sms;
      more.peak = kCard.peak * sms / kCard.sm_count;
      const double now = attention_time(call(phase), more, 1).total;
      EXPECT_LE(now, before) << sms;
      before = now;
    }
    AttentionCall longer = call(phase);
    before = 0;
    for (int i = 0; i < 50; ++i) {
      const double now = attention_time(longer, kCard, 1).total;
      EXPECT_GE(now, before) << i;
      EXPECT_GE(now * kCard.peak, attention_flops(longer)) << i;
      before = now;
      longer.heads += i % 3 == 0;
      longer.queries += i % 3 == 1;
      longer.keys += i % 3 == 2;
    }
  }
}

TEST(Attention, InAStep) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.op = "attention";
  kernel.shape = AttentionShape{
      .heads = {0, 12}, .queries = fixed_size(256), .keys = fixed_size(200), .features = 64, .values = 64};
  kernel.read_bytes = {0, 1'000'000};
  EXPECT_EQ(shape_text(kernel, 2), "24x256x200 64");
  GpuSpec gpu = test::small_gpu();
  gpu.sm_count = 10;
  gpu.tdp = Watts(300);
  gpu.math[index_of(MathType::fp32)]->clock = Hertz(1e9);
  const Profile profile = test::small_profile();
  const KernelCost cost = estimate(kernel, 2, calibration_of(profile, gpu));
  EXPECT_EQ(cost.algorithm, Algorithm::attention);
  EXPECT_EQ(cost.provenance, Provenance::modelled);
  EXPECT_GT(cost.compute.si(), 0);
  EXPECT_GE(cost.total, cost.compute);
  EXPECT_GT(estimate(kernel, 4, calibration_of(profile, gpu)).total, cost.total);
}

}  // namespace
}  // namespace tbdsim
