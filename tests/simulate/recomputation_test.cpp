// Activations that recomputation, narrow numbers and the loss leave, against sums done by hand.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/plan/rank_memory.h"
#include "tests/hwspecs/message_of.h"
#include "tests/simulate/plan_world.h"

namespace tbdsim {
namespace {

using enum RecomputeModule;
using test::llama3_8b;
using test::mixtral_8x7b;
using testing::HasSubstr;

// DeepSeek-V3's attention in a model of four layers without experts.
DecoderShape low_rank() {
  DecoderShape s = llama3_8b();
  s.name = "low_rank";
  s.layers = 4;
  s.kv_heads = s.heads = 32;
  s.head_size = 192;
  s.value_size = 128;
  s.q_rank = 1536;
  s.kv_rank = 512;
  s.rotary_size = 64;
  return completed(s);
}

ParallelLayout selective(RecomputeModules modules) {
  return {.zero = 1, .recompute = Recomputation::selective, .modules = modules};
}

class RecomputationTest : public test::PlanTest {};

constexpr double kTokens = 4096;

TEST_F(RecomputationTest, ModulesByHand) {
  const PlanInputs in = inputs(llama3_8b(), 8, 64);
  const double none = predict(in, {.zero = 1}).first.activations.si();
  const auto dropped = [&](RecomputeModules modules) {
    return (none - predict(in, selective(modules)).first.activations.si()) / 32 / kTokens / 2;
  };
  EXPECT_DOUBLE_EQ(dropped({core_attn}), 0);  // attention in one kernel keeps no scores
  EXPECT_DOUBLE_EQ(dropped({layernorm}), 2 * 4096);
  // The second norm, gate and up, their product.
  EXPECT_DOUBLE_EQ(dropped({mlp}), 4096 + 3 * 14336);
  EXPECT_DOUBLE_EQ(dropped({layernorm, mlp}), 2 * 4096 + 3 * 14336);
}

TEST_F(RecomputationTest, LowRankKeysAndValuesAreMadeAgain) {
  const PlanInputs in = inputs(low_rank(), 8, 64);
  const LayoutPrediction none = predict(in, {.zero = 1}), again = predict(in, selective({mla_up_proj}));
  // Queries, keys, values and the norms of both low-rank forms.
  const double dropped = 32 * (192 + 192 + 128) + 1536 + 512;
  EXPECT_DOUBLE_EQ((none.first.activations - again.first.activations).si(), 4 * kTokens * 2 * dropped);
  EXPECT_GT(again.parts.again, Seconds(0));
  EXPECT_EQ(none.parts.again, Seconds(0));
}

TEST_F(RecomputationTest, ExpertsAreSentTheirTokensAgain) {
  const PlanInputs in = inputs(mixtral_8x7b(), 64, 128);
  const LayoutPrediction none = predict(in, {.ep = 8, .zero = 1});
  ParallelLayout layout = selective({moe});
  layout.ep = 8;
  const LayoutPrediction again = predict(in, layout);
  // Two of four all-to-alls are repeated; with the activation alone none is.
  EXPECT_NEAR(again.parts.within / none.parts.within, 1.5, 1e-9);
  layout.modules = {moe_act};
  const LayoutPrediction activation = predict(in, layout);
  EXPECT_EQ(activation.parts.within, none.parts.within);
  // Two experts' outputs of the activation for each token.
  EXPECT_DOUBLE_EQ((none.first.activations - activation.first.activations).si(),
                   32 * kTokens * 2 * 2 * 14336);
  EXPECT_LT(again.first.activations, activation.first.activations);
}

TEST_F(RecomputationTest, TheFirstLayersOfAChunkAlone) {
  const PlanInputs in = inputs(llama3_8b(), 8, 64);
  const auto layers = [&](std::int64_t count) {
    return predict(in, {.zero = 1, .recompute = Recomputation::full, .recompute_layers = count});
  };
  const LayoutPrediction none = predict(in, {.zero = 1}), all = layers(0), ten = layers(10);
  EXPECT_DOUBLE_EQ(ten.first.activations.si(),
                   (none.first.activations.si() * 22 + all.first.activations.si() * 10) / 32);
  EXPECT_NEAR(ten.parts.again / all.parts.again, 10.0 / 32, 1e-9);
  EXPECT_EQ(layers(32).step, all.step);
}

TEST_F(RecomputationTest, CastsAreKeptInsteadOfSixteenBits) {
  PlanInputs in = inputs(llama3_8b(), 8, 64);
  const auto of_each = [&] { return predict(in, {.zero = 1}).first.activations.si() / 32 / kTokens; };
  const double half = of_each();
  in.precision.math = MathType::fp8;
  // Inputs of three products are casts; the fourth's beside attention's own output.
  const double operands = 2 * 4096 + 14336;
  EXPECT_DOUBLE_EQ(half - of_each(), operands - 4096);
  in.stack.keeps_casts = false;
  EXPECT_DOUBLE_EQ(half, of_each());
  in.precision.fused_attention = MathType::fp8;  // queries, keys, values and the context; the product's input
  EXPECT_DOUBLE_EQ(half - of_each(), 4096 + 2048 + 4096 - 2 * 4096);
}

TEST_F(RecomputationTest, ParametersOfLayersInEightBits) {
  PlanInputs in = inputs(llama3_8b(), 8, 64);
  in.stack.parameter_bytes = 1;
  const double ends = 2.0 * 128256 * 4096 + 4096;  // embedding, logits, last norm
  EXPECT_DOUBLE_EQ(predict(in, {.zero = 1}).first.parameters.si(), 8'030'261'248 + ends);
}

TEST_F(RecomputationTest, ScoresOfTheLoss) {
  PlanInputs in = inputs(llama3_8b(), 8, 64);
  // Beside two workspaces of PyTorch and one of Transformer Engine.
  const double scores = kTokens * 128256, workspaces = 3 * 32 * kMebi;
  for (const auto& [value, bytes] :
       {std::pair{"false", 6.0}, std::pair{"true", 10.0}, std::pair{"one_kernel", 4.0}}) {
    set_stack(in.stack, "fused_loss", value);
    EXPECT_DOUBLE_EQ(predict(in, {.zero = 1}).first.working.si(), bytes * scores + workspaces) << value;
  }
  EXPECT_EQ(
      test::message_of<UsageError>([&] { set_stack(in.stack, "fused_loss", "in_plac"); }),
      "fused_loss 'in_plac'; expected one of false, true, one_kernel, in_place; did you mean 'in_place'?");
  EXPECT_EQ(test::message_of<UsageError>([&] { set_stack(in.stack, "parameter_bytes", "3"); }),
            "parameter_bytes '3'; expected one of 1, 2, 4; did you mean '1'?");
}

TEST_F(RecomputationTest, WhatMeansNothingIsAnError) {
  const auto message = [](const ParallelLayout& layout, const DecoderShape& shape) {
    return test::message_of<UsageError>(
        [&] { (void)legal_layout(layout, shape, {.gpus = 8, .global_batch = 8, .sequence = 4096}); });
  };
  EXPECT_EQ(message(selective({mla_up_proj}), llama3_8b()),
            "recompute_modules mla_up_proj but llama3_8b has no low-rank keys and values");
  EXPECT_EQ(message(selective({mlp, moe}), llama3_8b()),
            "recompute_modules mlp,moe but llama3_8b has no experts");
  EXPECT_EQ(message({.modules = {mlp}}, llama3_8b()),
            "recompute_modules mlp with recompute none; expected selective");
  EXPECT_EQ(message({.recompute = Recomputation::selective, .recompute_layers = 2}, llama3_8b()),
            "recompute_layers 2 with recompute selective; expected full");
  EXPECT_EQ(message({.recompute = Recomputation::full, .recompute_layers = 33}, llama3_8b()),
            "recompute_layers 33 is out of range; llama3_8b has 32 layers");
  ParallelLayout layout;
  EXPECT_THAT(test::message_of<UsageError>([&] { set_layout(layout, "recompute_modules", "mlp,layernrm"); }),
              HasSubstr("recompute_modules 'layernrm'; expected one of core_attn, layernorm, moe_act, "
                        "mla_up_proj, mlp, moe; did you mean 'layernorm'?"));
}

}  // namespace
}  // namespace tbdsim
