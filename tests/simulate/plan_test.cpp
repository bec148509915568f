// Layouts: what is legal, what a rank holds and how long it takes, against sums done by hand.
#include <cmath>
#include <vector>

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/layout/decoder_of_graph.h"
#include "simulate/plan/rank_memory.h"
#include "simulate/plan/search.h"
#include "simulate/workload/spec_cache.h"
#include "tests/hwspecs/message_of.h"
#include "tests/simulate/plan_world.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using test::llama3_8b;
using test::mixtral_8x7b;
using PlanTest = test::PlanTest;

// 8,030,261,248: Meta's Llama 3 8B. Mixtral 8x7B: 46,702,792,704.
TEST(DecoderShape, CountsParameters) {
  EXPECT_EQ(total_parameters(llama3_8b()), 8'030'261'248);
  EXPECT_EQ(total_parameters(mixtral_8x7b()), 46'702'792'704);
}

// 6 * (8,030,261,248 - embedding 525,336,576 - 65 norms of 4,096) + 12 * 32 * 4096 * 8192.
TEST(DecoderShape, CountsOperations) {
  const double norms = 65 * 4096;
  const double products = 8'030'261'248.0 - 525'336'576.0 - norms;
  const double counted = model_flops_per_token(llama3_8b(), 8192);
  EXPECT_NEAR(counted, 6 * products + 12.0 * 32 * 4096 * 8192, 6 * norms);
}

std::string complaint(const ParallelLayout& layout, const DecoderShape& shape, const Job& job) {
  return test::message_of<UsageError>([&] { (void)legal_layout(layout, shape, job); });
}

TEST(Layout, SaysWhatDoesNotDivideAndWhatWould) {
  const DecoderShape s = llama3_8b();
  const Job job{.gpus = 48, .global_batch = 96, .sequence = 8192};
  EXPECT_EQ(complaint({.tp = 3}, s, job),
            "llama3_8b 32 heads cannot be divided by tp 3; the nearest that divides is tp 2");
  EXPECT_EQ(complaint({.pp = 6}, s, job),
            "llama3_8b 32 layers cannot be divided by pp 6 x vp 1 = 6; the nearest that divides is 4, or "
            "uneven true");
  EXPECT_THAT(
      complaint({.micro_batch = 7}, s, job),
      HasSubstr(
          "global batch 96 cannot be divided by dp 48 x micro-batch 7 = 336; expected a multiple, as 336"));
  EXPECT_THAT(complaint({.micro_batch = 5}, s, {.gpus = 4, .global_batch = 63, .sequence = 8192}),
              HasSubstr("dp 4 x micro-batch 5 = 20; expected a multiple, as 80"));
  EXPECT_EQ(complaint({.tp = 5}, s, job),
            "tp 5 x pp 1 x cp 1 = 5 ranks do not divide 48 GPUs; the nearest that divides is 4");
  EXPECT_EQ(complaint({.dp = 48, .tp = 2}, s, job),
            "dp 48 x tp 2 x pp 1 x cp 1 are 96 ranks on 48 GPUs; expected as many of both, as dp 24");
  EXPECT_THAT(
      complaint({.pp = 2, .vp = 4}, s, {.gpus = 2, .global_batch = 3, .sequence = 8192}),
      HasSubstr("vp 4 needs micro-batches in multiples of pp 2, not 3 (global batch 3 / dp 1 / micro-batch "
                "1); the nearest that goes is a global batch of 4"));
  EXPECT_EQ(complaint({.cp = 3}, s, job),
            "sequence length 8192 cannot be divided into 2 x cp 3 pieces; the nearest that divides is cp 2");
  EXPECT_THAT(complaint({.ep = 2}, s, job), HasSubstr("ep 2 but llama3_8b has no experts"));
  EXPECT_THAT(complaint({.ep = 3}, mixtral_8x7b(), job),
              HasSubstr("mixtral 8 experts cannot be divided by ep 3; the nearest that divides is ep 2"));
  EXPECT_EQ(complaint({.tp = 4, .pp = 4, .sequence_parallel = true}, s, job), "(nothing thrown)");
}

TEST(Layout, HugeNumbersAreErrors) {
  const DecoderShape s = llama3_8b();
  const Job job{.gpus = 8, .global_batch = 8, .sequence = 8192};
  const std::int64_t most = 10'000'000;
  EXPECT_THAT(complaint({.dp = most, .tp = most, .pp = most, .cp = most}, s, job), HasSubstr("on 8 GPUs"));
  EXPECT_THAT(complaint({.tp = most, .pp = most, .cp = most}, s, job), HasSubstr("do not divide 8 GPUs"));
  EXPECT_THAT(complaint({.dp = most + 1}, s, job),
              HasSubstr("dp 10000001 is out of range; expected 1 to 10000000"));
  EXPECT_THAT(
      complaint({.dp = 8, .micro_batch = most}, s, job),
      HasSubstr("micro-batch 10000000 x sequence length 8192 are more than 67108864 tokens in one pass"));
  EXPECT_THAT(complaint({.dp = 8, .micro_batch = 3}, s, job), HasSubstr("cannot be divided"));
}

TEST(Layout, EndsWithEmbeddingAndLogitsMayHaveOneLayerLess) {
  const ParallelLayout layout{.pp = 4};
  // 14 layers and two ends on four stages: 3, 4, 4, 3.
  EXPECT_EQ(layers_of_chunk(layout, 0, 14), 3);
  EXPECT_EQ(layers_of_chunk(layout, 1, 14), 4);
  EXPECT_EQ(layers_of_chunk(layout, 3, 14), 3);
  EXPECT_EQ(layers_of_chunk({.pp = 4, .uneven = true}, 0, 14), 4);
  EXPECT_EQ(layers_of_chunk({.pp = 4, .uneven = true}, 2, 14), 3);
}

TEST(Layout, TextsAreReadStrictly) {
  ParallelLayout layout;
  set_layout(layout, "recompute", "full");
  EXPECT_EQ(layout.recompute, Recomputation::full);
  EXPECT_EQ(test::message_of<UsageError>([&] { set_layout(layout, "recompute", "ful"); }),
            "recompute 'ful'; expected one of none, selective, operators, full; did you mean 'full'?");
  EXPECT_EQ(test::message_of<UsageError>([&] { set_layout(layout, "zero", "4"); }),
            "zero '4'; expected a whole number from 0 to 3");
}

// NeMo pads GPT's 50,257 words to a multiple of 128 on each of four ranks: 99 * 512 = 50,688. Without it
// products of scores have 12,565 columns, which no tensor core takes whole.
TEST_F(PlanTest, NemoPadsWordsToWholeTiles) {
  PlanInputs in = inputs(llama3_8b(), 8, 16);
  const ParallelLayout layout{.dp = 2, .tp = 4, .zero = 1, .sequence_parallel = true};
  const auto step = [&](const char* stack, std::int64_t words) {
    in.stack = stack_named(stack);
    in.shape.vocabulary = words;
    return predict(in, layout).step.si();
  };
  EXPECT_DOUBLE_EQ(step("nemo", 50'257), step("nemo", 50'688));
  EXPECT_GT(step("fsdp", 50'257), step("fsdp", 50'688));
}

// States of 8.03e9 parameters on 8 replicas: 2 + 4 bytes each, 12 more divided by ZeRO-1.
TEST_F(PlanTest, StatesByHand) {
  const PlanInputs in = inputs(llama3_8b(), 8, 64);
  const double n = 8'030'261'248;
  const RankMemory none = predict(in, {.zero = 0}).first, one = predict(in, {.zero = 1}).first;
  EXPECT_DOUBLE_EQ(none.parameters.si(), 2 * n);
  EXPECT_DOUBLE_EQ(none.gradients.si(), 4 * n);
  EXPECT_DOUBLE_EQ(none.optimizer.si(), 12 * n);
  EXPECT_DOUBLE_EQ(one.optimizer.si(), 12 * n / 8);
  const RankMemory three = predict(in, {.zero = 3}).first;
  EXPECT_DOUBLE_EQ((three.parameters + three.gradients + three.optimizer).si(), 18 * n / 8);
  PlanInputs torch = in;
  torch.stack = stack_named("fsdp");  // whose parameters are in fp32
  const RankMemory sharded = predict(torch, {.zero = 3}).first;
  EXPECT_DOUBLE_EQ((sharded.parameters + sharded.gradients + sharded.optimizer).si(), 16 * n / 8);
}

// With full recomputation a block keeps its input only: 2 * 4096 * 4096 bytes for each of 32 layers.
TEST_F(PlanTest, ActivationsByHand) {
  const PlanInputs in = inputs(llama3_8b(), 8, 64);
  const RankMemory full = predict(in, {.zero = 1, .recompute = Recomputation::full}).first;
  EXPECT_DOUBLE_EQ(full.activations.si(), 32.0 * 2 * 4096 * 4096);
  const RankMemory none = predict(in, {.zero = 1}).first;
  // Input, norm, q k v, context and its statistics, input and norm again, gate and up, product.
  const double each =
      2.0 * 4096 * (4096 * 2 + (4096 + 2048) + 4096 + 4096 * 2 + 2 * 14336 + 14336) + 4 * 32 * 4096;
  EXPECT_DOUBLE_EQ(none.activations.si(), 32 * each);
}

// Transformer Engine's fused operators: rows x 4 bytes less of casts of the feed-forward layer's two inputs
// (4,096 and 14,336 features) and of the gradient of 28,672; beside adapters of 6,144 and 4,096 outputs rows
// x 14 bytes less of their scale, forward and backward, and sum. Casts of frozen products write one copy: of
// inputs of 4,096, 4,096, 4,096 and 14,336 features and gradients of 6,144, 4,096, 28,672 and 4,096.
TEST_F(PlanTest, FusedOperatorsMoveLess) {
  PlanInputs in = inputs(llama3_8b(), 8, 64);
  in.precision.math = MathType::fp8;
  const auto bytes = [&](bool fused, std::int64_t tp = 1) {
    in.stack.fuses_operators = fused;
    const RankWork work = block_work(in.shape, {.tp = tp}, in.job, false, in.stack, in.precision);
    double sum = 0;
    for (const auto* pass : {&work.forward, &work.backward}) {
      for (const Kernel& k : *pass) {
        if (k.kind != KernelKind::gemm) sum += static_cast<double>((k.read_bytes + k.written_bytes).at(0));
      }
    }
    return sum;
  };
  constexpr double kRows = 4096;
  const double trained = bytes(false);
  EXPECT_DOUBLE_EQ(trained - bytes(true), kRows * 4 * (4096 + 14336 + 28672));
  in.job.adapters = {.rank = 16, .attention = true, .output = true};
  const double frozen = bytes(false);
  EXPECT_DOUBLE_EQ(frozen - bytes(true), kRows * (4 * (4096 + 14336 + 28672) + 14 * (6144 + 4096)));
  const double one_copy = 3 * 4096 + 14336 + 6144 + 4096 + 28672 + 4096;
  EXPECT_DOUBLE_EQ(trained - frozen, kRows * (one_copy - 14 * (6144 + 4096)));
  // Adapters beside divided matrices stay operators of their own.
  EXPECT_DOUBLE_EQ(bytes(false, 2) - bytes(true, 2), kRows * 4 * (4096 + (14336 + 28672) / 2));
}

// Free memory that the allocator holds gives way to tensors, which have to fit themselves.
TEST_F(PlanTest, ReservedMemoryGivesWay) {
  constexpr double kOneGib = 1 << 30;
  PlanInputs in = inputs(llama3_8b(), 8, 64);
  GpuSpec gpu = *gpu_;
  Calibration calibration = *calibration_;
  calibration.gpu = &gpu;
  in.calibration = &calibration;
  gpu.usable_memory = Bytes(1e12);
  const RankMemory usual = predict(in, {.zero = 1}).first;
  ASSERT_GT(usual.reserved, usual.allocated);
  gpu.usable_memory = Bytes(std::floor(usual.device.si() - 0.5 * (usual.reserved - usual.allocated).si()));
  const RankMemory tight = predict(in, {.zero = 1}).first;
  EXPECT_LE(tight.device, gpu.usable_memory);
  EXPECT_NEAR(tight.device.si(), gpu.usable_memory.si(), 2);
  EXPECT_EQ(tight.allocated, usual.allocated);
  gpu.usable_memory = usual.device - (usual.reserved - usual.allocated) - Bytes(kOneGib);
  const RankMemory lacking = predict(in, {.zero = 1}).first;
  EXPECT_EQ(lacking.reserved, lacking.allocated);
  EXPECT_NEAR((lacking.device - gpu.usable_memory).si(), kOneGib, 1);
}

// A host of seconds for each launch: blocks are launched once more where they are computed again, gradients
// by autograd once either way.
TEST_F(PlanTest, ModulesAndAutogradLaunchApart) {
  PlanInputs in = inputs(llama3_8b(), 8, 64);
  const auto idle = [&](double launch, double autograd, Recomputation recompute) {
    in.stack.launch = Seconds(launch);
    in.stack.operator_launch = Seconds(autograd);
    return predict(in, {.zero = 1, .recompute = recompute}).parts.launch.si();
  };
  const double gradients = idle(1, 2, Recomputation::none) - idle(1, 1, Recomputation::none);
  EXPECT_NEAR(idle(1, 2, Recomputation::full) - idle(1, 1, Recomputation::full), gradients, 1e-6);
  const double once = idle(2, 1, Recomputation::none) - idle(1, 1, Recomputation::none);
  const double twice = idle(2, 1, Recomputation::full) - idle(1, 1, Recomputation::full);
  PieceTable table(in);
  const double block = table.of({}).dense.forward_launches.kernels;
  EXPECT_NEAR(twice - once, 64.0 / 8 * 32 * block, 1e-6);  // micro-batches, blocks
  EXPECT_GT(gradients, once);
}

TEST_F(PlanTest, PartsSumToTheStep) {
  const PlanInputs in = inputs(llama3_8b(), 64, 128);
  for (const ParallelLayout& layout :
       {ParallelLayout{.tp = 2, .pp = 4, .vp = 2, .zero = 1, .sequence_parallel = true},
        ParallelLayout{.pp = 4, .recompute = Recomputation::full}, ParallelLayout{.zero = 3, .shard = 8},
        ParallelLayout{.tp = 8, .cp = 2}}) {
    const LayoutPrediction p = predict(in, layout);
    const StepParts& s = p.parts;
    const Seconds sum = s.compute + s.again + s.launch + s.within + s.sends + s.bubble + s.replicas +
                        s.update + s.slowest + s.other;
    EXPECT_NEAR(sum.si(), p.step.si(), 1e-9 * p.step.si());
    for (const Seconds part : {s.compute, s.bubble, s.replicas, s.within, s.launch})
      EXPECT_GE(part.si(), -1e-9);
  }
}

TEST_F(PlanTest, BetterHardwareIsNeverSlower) {
  PlanInputs in = inputs(llama3_8b(), 64, 128);
  for (const ParallelLayout& layout : {ParallelLayout{.tp = 8, .pp = 2, .zero = 1}, ParallelLayout{.zero = 3},
                                       ParallelLayout{.tp = 4, .cp = 4, .zero = 1}}) {
    PlanInputs better = in;
    better.fabric.within = in.fabric.within * 2;
    better.fabric.network = in.fabric.network * 2;
    EXPECT_LE(predict(better, layout).step.si(), predict(in, layout).step.si());
  }
}

TEST_F(PlanTest, MixtureOnExperts) {
  const PlanInputs in = inputs(mixtral_8x7b(), 64, 128);
  const LayoutPrediction p = predict(in, {.ep = 8, .zero = 1});
  const double experts = 32.0 * 8 * 3 * 4096 * 14336, all = 46'702'792'704;
  // Each rank holds an eighth of the experts, and of their optimizer's state an eighth over 8 replicas.
  EXPECT_DOUBLE_EQ(p.first.parameters.si(), 2 * (all - experts + experts / 8));
  EXPECT_DOUBLE_EQ(p.first.optimizer.si(), 12 * ((all - experts) / 64 + experts / 8 / 8));
  EXPECT_GT(p.parts.within, Seconds(0));
}

// 60 GPUs leave 15 ranks to each replica where 256 sequences divide at most by 4: no pipeline of 15 stages
// divides 80 layers evenly, but all stages of 15 differ by one layer at most.
TEST_F(PlanTest, StagesDifferWhereNoEvenPipelineDividesTheBatch) {
  DecoderShape shape = llama3_8b();
  shape.layers = 80;
  const std::vector<ParallelLayout> layouts =
      legal_layouts(shape, {.gpus = 60, .global_batch = 256, .sequence = 4096}, 8);
  ASSERT_FALSE(layouts.empty());
  for (const ParallelLayout& l : layouts) {
    EXPECT_TRUE(l.uneven);
    EXPECT_EQ(l.pp % 15, 0);
  }
}

TEST_F(PlanTest, TheBestLayoutIsLegalFitsAndIsFastest) {
  const PlanInputs in = inputs(llama3_8b(), 64, 128);
  const std::vector<ParallelLayout> layouts = legal_layouts(in.shape, in.job, in.fabric.domain);
  ASSERT_GT(layouts.size(), 100u);
  const Plan plan = best_layouts(layouts, in, FlopsPerSecond(989e12), gpu_->usable_memory);
  ASSERT_EQ(plan.best.size(), 10u);
  EXPECT_EQ(plan.searched, layouts.size());
  for (std::size_t i = 0; i < plan.best.size(); ++i) {
    EXPECT_TRUE(is_legal(plan.best[i].layout, in.shape, in.job));
    EXPECT_LE(plan.best[i].most.device, gpu_->usable_memory);
    if (i > 0) {
      EXPECT_GE(plan.best[i].step, plan.best[i - 1].step);
    }
  }
  EXPECT_EQ(plan.pareto.front().step, plan.best.front().step);
  for (std::size_t i = 1; i < plan.pareto.size(); ++i)
    EXPECT_LT(plan.pareto[i].most.reserved, plan.pareto[i - 1].most.reserved);
}

TEST(Fabric, DomainsFirst) {
  Fabric fabric;
  fabric.domain = 8;
  EXPECT_EQ(group_of(fabric, 4, 1).inner, 4);
  EXPECT_EQ(group_of(fabric, 16, 1).inner, 8);
  EXPECT_EQ(group_of(fabric, 16, 4).inner, 2);
  EXPECT_EQ(group_of(fabric, 16, 8).outer, 16);
}

// The layer graphs of the catalogue give the sizes written out above.
TEST(DecoderOfGraph, FindsSizesByLayers) {
  SpecCache specs = test::source_specs();
  const auto decoder = [&](const std::string& name) {
    const auto file = specs.model(name);
    return decoder_of(build_model(*file, find_variant(*file, "", "pytorch")));
  };
  EXPECT_EQ(total_parameters(decoder("llama3_8b")), 8'030'261'248);
  EXPECT_EQ(total_parameters(decoder("mixtral_8x7b")), 46'702'792'704);
  const DecoderShape s = decoder("llama3_8b");
  EXPECT_EQ(s.layers, 32);
  EXPECT_EQ(s.heads, 32);
  EXPECT_EQ(s.kv_heads, 8);
  EXPECT_EQ(s.ffn, 14336);
  EXPECT_TRUE(s.gated && s.rms_norm && s.rotary && !s.bias && !s.tied);
  const DecoderShape d = decoder("deepseek_v3");
  EXPECT_EQ(d.layers, 61);
  EXPECT_EQ(d.dense_layers, 3);
  EXPECT_EQ(d.experts, 256);
  EXPECT_EQ(d.q_rank, 1536);
  EXPECT_EQ(d.kv_rank, 512);
  EXPECT_EQ(d.rotary_size, 64);
  EXPECT_NEAR(total_parameters(d) / 671'026'404'352.0, 1, 1e-4);
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)decoder("resnet50"); }),
              HasSubstr("resnet50 cannot be laid out"));
  for (const char* other : {"vit", "t5", "bert_large", "transformer"}) {
    EXPECT_THAT(test::message_of<UsageError>([&] { (void)decoder(other); }), HasSubstr("cannot be laid out"))
        << other;
  }
  EXPECT_THAT(test::message_of<UsageError>([&] { (void)decoder("bert_large"); }),
              AllOf(HasSubstr("attention in several layers"), HasSubstr("'tbd-sim scaling'")));
}

std::vector<std::string> plan_of(std::vector<std::string> more) {
  std::vector<std::string> all = {"plan", "llama3_8b",      "--gpu", "h100_sxm",  "--gpus",
                                  "64",   "--global-batch", "128",   "--seq-len", "4096"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(PlanCommand, SearchesAndPredicts) {
  const test::CliResult best = test::run(plan_of({}));
  EXPECT_EQ(best.exit_code, 0) << best.err;
  EXPECT_THAT(best.out, HasSubstr("legal layouts"));
  EXPECT_THAT(best.out, HasSubstr("The first is "));
  const test::CliResult one =
      test::run(plan_of({"--tp", "2", "--pp", "4", "--zero", "1", "--format", "json"}));
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("optimizer state, last stage"));
}

// 37 is no number of replicas of 128 sequences, nor of ranks that share 32 heads, and more than the 32
// layers. 36 are 4 replicas of 9 stages, 38 are 2 of 19; 37 replicas divide 3 * 37 and 4 * 37 sequences.
TEST(PlanCommand, WhatGoesWhereNoLayoutDoes) {
  const test::CliResult prime = test::run({"plan", "llama3_8b", "--gpu", "h100_sxm", "--gpus", "37",
                                           "--global-batch", "128", "--seq-len", "4096"});
  EXPECT_EQ(prime.exit_code, 2);
  EXPECT_THAT(prime.err,
              HasSubstr("no layout of llama3_8b divides 37 GPUs and a global batch of 128; expected "
                        "GPUs as 36 or 38, or a global batch as 111 or 148"));
  // 3 does not divide 32 heads, with any number of GPUs.
  EXPECT_THAT(test::run(plan_of({"--tp", "3", "--search", "true"})).err,
              HasSubstr("a global batch of 128 with what is said of it; expected other values of tp\n"));
  const test::CliResult card = test::run({"plan", "llama3_8b", "--gpu", "l40s", "--global-batch", "8"});
  EXPECT_EQ(card.exit_code, 0) << card.err;
  EXPECT_THAT(card.out, HasSubstr("server_pcie4: Server with PCI Express 4.0, two sockets (usual for l40s)"));
  EXPECT_THAT(test::run({"plan", "gpt2_xl", "--gpu", "h100_sxm", "--seq-len", "4096"}).err,
              HasSubstr("seq_len 4096 is more than the 1024 positions that gpt2_xl has learned"));
}

TEST(PlanCommand, WrongLayoutsAreUsageErrors) {
  const test::CliResult heads = test::run(plan_of({"--tp", "3"}));
  EXPECT_EQ(heads.exit_code, 2);
  EXPECT_THAT(heads.err, HasSubstr("do not divide 64 GPUs"));
  EXPECT_EQ(test::run(plan_of({"--stack", "megatro"})).exit_code, 2);
  EXPECT_THAT(test::run(plan_of({"--stack", "megatro"})).err, HasSubstr("did you mean 'megatron'?"));
  EXPECT_EQ(test::run(plan_of({"--dp", "99999999999999999999"})).exit_code, 2);
  EXPECT_EQ(test::run({"plan", "resnet50", "--gpu", "h100_sxm"}).exit_code, 2);
  EXPECT_EQ(test::run({"plan", "llama3_8b", "--gpu", "h100_sxm", "--seq-len", "60000000", "--dp", "8",
                       "--global-batch", "8"})
                .exit_code,
            2);
}

}  // namespace
}  // namespace tbdsim
