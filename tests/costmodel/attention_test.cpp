// Attention in one kernel: blocks, products and softmax by hand, and its cost in a step.
#include "costmodel/families/attention.h"

#include <array>
#include <cmath>

#include <gmock/gmock.h>

#include "costmodel/estimate.h"
#include "costmodel/families/memory_efficient_attention.h"
#include "costmodel/model_of_kernel.h"
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

// Where nothing was fitted. A score: 2 * 128 operations at 0.9 * 1,024 a clock, 8 instructions at 128.
TEST(UnfittedAttention, ByBlocks) {
  const double score = 256 / (0.9 * 1.024e12) + 8 / 128e9;
  const TimeParts<double> time = unfitted_attention_time(call(), kCard, 1);
  EXPECT_DOUBLE_EQ(time.compute, 3 * 128 * 256 * score);
  EXPECT_DOUBLE_EQ(time.memory, 1e5 / 80e9);
  EXPECT_DOUBLE_EQ(time.total, 5e-6 + std::hypot(time.compute, time.memory));
  // 12 * 2 blocks of 128 keys over 256 queries; 2 * (3 + 2) * 64 operations at 0.7, 16 instructions.
  const double gradients = 640 / (0.7 * 1.024e12) + 16 / 128e9;
  EXPECT_DOUBLE_EQ(unfitted_attention_time(call(Phase::backward_data), kCard, 1).compute,
                   3 * 128 * 256 * gradients);
}

// The memory-efficient kernel waits for operands from shared memory, 5,300 operations a clock forward and
// 1,840 backward, and executes 45 and 119 instructions; with 256 features it takes 1.5 and 4.6 times as long.
TEST(UnfittedAttention, MemoryEfficientIsSlower) {
  AttentionCall slow = call();
  slow.kernel = AttentionKernel::memory_efficient;
  const auto compute = [&](double features) {
    slow.features = slow.values = features;
    return unfitted_attention_time(slow, kCard, 1).compute;
  };
  const double score = 256 / 1.024e12 + 256 / 5.3e12 + 45 / 128e9;
  EXPECT_DOUBLE_EQ(compute(64), 3 * 128 * 256 * score);
  EXPECT_DOUBLE_EQ(compute(256), 3 * 128 * 256 * 1.5 * (1'024 / 1.024e12 + 1'024 / 5.3e12 + 45 / 128e9));
  slow.phase = Phase::backward_data;
  const double gradients = 640 / 1.024e12 + 640 / 1.84e12 + 119 / 128e9;
  EXPECT_DOUBLE_EQ(compute(64), 3 * 128 * 256 * gradients);
}

// fp32 from Ampere on: 148 operations of a product a clock forward and 166 backward, TF32 allowed or not.
TEST(UnfittedAttention, NumbersOfFp32AreSplit) {
  AttentionCall wide = call();
  wide.kernel = AttentionKernel::memory_efficient;
  wide.element_bytes = 4;
  Hardware ampere = kCard;
  ampere.compute_capability = 80;
  for (const bool tensor_cores : {true, false}) {
    ampere.tensor_cores = tensor_cores;
    wide.phase = Phase::forward;
    EXPECT_DOUBLE_EQ(unfitted_attention_time(wide, ampere, 1).compute, 3 * 128 * 256 * (256 / 148e9));
    wide.phase = Phase::backward_data;
    EXPECT_DOUBLE_EQ(unfitted_attention_time(wide, ampere, 1).compute, 3 * 128 * 256 * (640 / 166e9));
  }
  ampere.compute_capability = 75;
  EXPECT_LT(unfitted_attention_time(wide, ampere, 1).compute, 3 * 128 * 256 * (640 / 166e9));
}

// Random numbers of the memory-efficient kernel: 93 instructions of a score forward, 164 backward.
TEST(UnfittedAttention, DroppingOutTakesInstructions) {
  AttentionCall kept = call();
  for (const auto kernel : {AttentionKernel::memory_efficient, AttentionKernel::flash2}) {
    kept.kernel = kernel;
    for (const Phase phase : {Phase::forward, Phase::backward_data}) {
      kept.phase = phase;
      AttentionCall dropped = kept;
      dropped.drops = true;
      const double more = unfitted_attention_time(dropped, kCard, 1).compute -
                          unfitted_attention_time(kept, kCard, 1).compute;
      const double instructions = kernel == AttentionKernel::flash2 ? 0 : phase == Phase::forward ? 93 : 164;
      EXPECT_NEAR(more, 3 * 128 * 256 * instructions / 128e9, 1e-15);
    }
  }
}

TEST(AttentionOn, WhatPyTorchTakes) {
  const auto taken = [](double capability, AttentionKernel asked) {
    GpuSpec gpu = test::small_gpu();
    gpu.compute_capability = capability;
    return attention_on(gpu, asked);
  };
  EXPECT_EQ(taken(7.5, AttentionKernel::by_gpu), AttentionKernel::memory_efficient);
  for (const double capability : {8.0, 8.9, 10.3, 12.0})
    EXPECT_EQ(taken(capability, AttentionKernel::by_gpu), AttentionKernel::flash2) << capability;
  for (const double capability : {9.0, 10.0})
    EXPECT_EQ(taken(capability, AttentionKernel::by_gpu), AttentionKernel::cudnn) << capability;
  EXPECT_EQ(taken(9, AttentionKernel::flash2), AttentionKernel::flash2) << "asked for by name";
}

TEST(Attention, FlopsOfTheScoresThatAreNeeded) {
  EXPECT_EQ(attention_flops(call()), 12.0 * 256 * 200 * 256);
  EXPECT_EQ(attention_flops(call(Phase::backward_data)), 12.0 * 256 * 200 * 640);
  AttentionCall causal = call();
  causal.causal = true;
  EXPECT_EQ(attention_flops(causal), attention_flops(call()) / 2);
  causal.window = 16;
  EXPECT_EQ(attention_flops(causal), 12.0 * 256 * 16 * 256);
}

// share 0.5, 0.25 backward, wide 1, softmax 1, prologue 10 and 20 keys, 1 and 2 us, all of the bandwidth,
// ordered 1.5.
constexpr std::array<double, 10> kParameters = {0.5, 0.25, 1, 1, 10, 20, 1e-6, 2e-6, 1, 1.5};

template <class Family = CudnnAttentionFamily>
TimeParts<double> fitted(const AttentionCall& c, const Hardware& hardware = kCard) {
  return kernel_time<Family>(c, hardware, {1, 1}, kParameters).parts;
}

// 24 blocks on 10 SMs: 3 rounds of 256 keys and 10. A score: 256 operations at 512 a clock beside an
// exponential at 16: hypot(0.5, 1 / 16) ns.
TEST(Attention, ForwardByBlocksOfQueries) {
  const TimeParts<double> time = fitted(call());
  EXPECT_NEAR(time.compute, 3 * 266 * 128 * std::hypot(0.5, 1.0 / 16) * 1e-9, 1e-15);
  EXPECT_DOUBLE_EQ(time.memory, 1e-6);
  EXPECT_DOUBLE_EQ(time.total, 1e-6 + std::hypot(time.compute, time.memory));
}

// cuDNN makes random numbers beside the exponentials, 21 instructions of 128 a clock; FlashAttention's are
// not counted.
TEST(Attention, DroppingOutTakesInstructions) {
  AttentionCall dropped = call();
  dropped.drops = true;
  EXPECT_NEAR(fitted(dropped).compute, 3 * 266 * 128 * std::hypot(0.5, 1.0 / 16 + 21.0 / 128) * 1e-9, 1e-15);
  EXPECT_EQ(fitted<FlashAttention2Family>(dropped).compute, fitted<FlashAttention2Family>(call()).compute);
}

// With 64 features the share is 0.25 * 128 / 64: 640 operations at 512 a clock, two exponentials.
TEST(Attention, BackwardByBlocksOfKeys) {
  const double compute = 3 * 276 * 128 * std::hypot(1.25, 2.0 / 16) * 1e-9;
  AttentionCall backward = call(Phase::backward_data);
  EXPECT_NEAR(fitted(backward).compute, compute, 1e-15);
  backward.deterministic = true;
  EXPECT_NEAR(fitted(backward).compute, 1.5 * compute, 1e-15);
}

// 2.4 blocks an SM with 192 + 10 keys in the mean, the longest 266: their fourth powers' sum, instead of 3 *
// 266.
TEST(Attention, CausalBlocksLongestFirst) {
  AttentionCall causal = call();
  causal.causal = true;
  const double rounds = std::pow(std::pow(2.4 * 202, 4) + std::pow(266, 4), 0.25);
  EXPECT_NEAR(fitted(causal).compute / fitted(call()).compute, rounds / (3 * 266), 1e-12);
}

// 4,096 operations a clock are fed: of 512 a share of 8/9, of an A100's 2,048 two thirds, of as many a half.
TEST(Attention, SlowTensorCoresWaitLessForOperands) {
  const Hardware hardware{.sm_count = 10, .clock = 1e9};
  EXPECT_DOUBLE_EQ(operands_in_time(512e9, hardware), 1.5 / 1.125);
  EXPECT_DOUBLE_EQ(operands_in_time(2'048e9, hardware), 1);
  EXPECT_DOUBLE_EQ(operands_in_time(4'096e9, hardware), 0.75);
}

// A window of 16 keys: one of 64 to 144 of them, 16 and a block of 128.
TEST(Attention, WindowsSkipKeys) {
  AttentionCall narrow = call();
  narrow.window = 16;
  EXPECT_NEAR(fitted(narrow).compute / fitted(call()).compute, (144 + 10) / 266.0, 1e-12);
  narrow.phase = Phase::backward_data;
  narrow.element_bytes = 1;
  EXPECT_EQ(fitted(narrow).compute, fitted(call(Phase::backward_data)).compute) << "fp8 skips none";
}

// Twice the exponentials a clock from 10.3 on; only FlashAttention 2 multiplies warp by warp on Hopper.
TEST(Attention, WhatAGenerationHas) {
  Hardware ultra = kCard;
  ultra.compute_capability = 103;
  EXPECT_NEAR(fitted(call(), ultra).compute / fitted(call()).compute,
              std::hypot(0.5, 1.0 / 32) / std::hypot(0.5, 1.0 / 16), 1e-12);
  Hardware hopper = kCard;
  hopper.peak = 10 * 4'096e9;
  Hardware blackwell = kCard;
  blackwell.peak = 10 * 8'192e9;
  EXPECT_EQ(fitted<FlashAttention2Family>(call(), hopper).compute,
            fitted<FlashAttention2Family>(call(), blackwell).compute);
  EXPECT_LT(fitted(call(), blackwell).compute, fitted(call(), hopper).compute);
  EXPECT_LT(fitted(call(), hopper).compute, fitted<FlashAttention2Family>(call(), hopper).compute);
}

TEST(Attention, MoreOfAnythingIsNeverSlowerAndMoreWorkNeverFaster) {
  for (const bool causal : {false, true}) {
    for (const Phase phase : {Phase::forward, Phase::backward_data}) {
      AttentionCall c = call(phase);
      c.causal = causal;
      double before = fitted(c).total;
      for (const int sms : {11, 12, 16, 24, 100}) {
        Hardware more = kCard;
        more.sm_count = sms;
        more.peak = kCard.peak * sms / kCard.sm_count;
        const double now = fitted(c, more).total;
        EXPECT_LE(now, before * (1 + 1e-12)) << sms;
        before = now;
      }
      Hardware faster = kCard;
      faster.clock *= 1.1;
      faster.peak *= 1.1;
      EXPECT_LT(fitted(c, faster).total, fitted(c).total);
      Hardware wider = kCard;
      wider.bandwidth *= 2;
      EXPECT_LT(fitted(c, wider).total, fitted(c).total);
      before = 0;
      for (int i = 0; i < 60; ++i) {
        const double now = fitted(c).total;
        EXPECT_GE(now, before) << i;
        EXPECT_GE(now * kCard.peak, attention_flops(c)) << i;
        AttentionCall full = c;
        full.causal = false;
        EXPECT_LE(now, fitted(full).total) << "a mask is never slower than none, " << i;
        before = now;
        c.heads += i % 3 == 0;
        c.queries += i % 3 == 1 ? 17 : 0;
        c.keys += i % 3 == 2 ? 17 : 0;
      }
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
  std::get<AttentionShape>(kernel.shape).queries_per_key = 4;
  EXPECT_EQ(shape_text(kernel, 2), "24x256x200 64 g4");
  std::get<AttentionShape>(kernel.shape).drops = true;
  EXPECT_EQ(shape_text(kernel, 2), "24x256x200 64 g4 dropout");
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
