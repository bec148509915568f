// Kernels over parameters and gradients: clipping, copies, casts. Expected numbers derive from 4 -> 3 without
// bias: 12 weights of 4 B.
#include "graphs/parameter_kernels.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using test::kernels_of;

// Two products of 12 weights each.
Model two_products(const std::string& keys, const std::string& training = "[{graph: main}]") {
  std::string text = test::model_text("[4]",
                                      "      - {name: a, type: fully_connected, outputs: 3, bias: false}\n"
                                      "      - {name: b, type: fully_connected, outputs: 4, bias: false}\n",
                                      "sgd", training);
  const std::string optimizer = "optimizer: sgd";
  return test::model_from(text.replace(text.find(optimizer), optimizer.size(), optimizer + keys));
}

// By norm: every gradient is read for its norm, then read and written; once each where updates are fused.
TEST(Clip, ByNorm) {
  const Model model = two_products(", clip: norm");
  const TrainingStep step = test::step_of(model);
  ASSERT_EQ(kernels_of(step, "gradient_norm").size(), 2u);
  EXPECT_EQ(kernels_of(step, "gradient_norm")[0].read_bytes, fixed_size(48));
  EXPECT_EQ(kernels_of(step, "gradient_norm")[0].written_bytes, Size{});
  ASSERT_EQ(kernels_of(step, "clip").size(), 2u);
  EXPECT_EQ(kernels_of(step, "clip")[0].written_bytes, fixed_size(48));
  const TrainingStep fused = test::step_of(model, {.update = UpdateKernels::fused});
  ASSERT_EQ(kernels_of(fused, "clip").size(), 1u);
  EXPECT_EQ(kernels_of(fused, "clip")[0].read_bytes, fixed_size(2 * 48));
}

// An update that divides gradients by a factor takes that of the norm, and of the loss scale, along.
TEST(Clip, AnUpdateMayTakeTheFactors) {
  const Lowering with_factor{.scale_in_update = true};
  const TrainingStep step = test::step_of(two_products(", clip: norm"), with_factor);
  EXPECT_EQ(kernels_of(step, "gradient_norm").size(), 2u);
  EXPECT_TRUE(kernels_of(step, "clip").empty());
  const Precision& amp = *std::ranges::find(kPrecisions, "amp", &Precision::name);
  EXPECT_EQ(kernels_of(test::step_of(two_products(""), {}, amp), "unscale").size(), 2u);
  EXPECT_TRUE(kernels_of(test::step_of(two_products(""), with_factor, amp), "unscale").empty());
}

// amp casts 12 weights of each product to 24 B before and as many gradients of 2 B after the pass. Weights in
// half precision need neither: an update writes 48 B of the fp32 copy and 24 B of the weights.
TEST(Casts, NoneOfWeightsInHalfPrecision) {
  const auto in = [](std::string_view name) -> const Precision& {
    return *std::ranges::find(kPrecisions, name, &Precision::name);
  };
  const TrainingStep amp = test::step_of(two_products(""), {}, in("amp"));
  ASSERT_EQ(kernels_of(amp, "cast").size(), 4u);
  EXPECT_EQ(kernels_of(amp, "cast")[0].written_bytes, fixed_size(24));
  const TrainingStep half = test::step_of(two_products(""), {}, in("fp16_master"));
  EXPECT_TRUE(kernels_of(half, "cast").empty());
  ASSERT_EQ(kernels_of(half, "sgd").size(), 2u);
  EXPECT_EQ(kernels_of(half, "sgd")[0].written_bytes, fixed_size(48 + 24));
}

TEST(Clip, ByValueNeedsNoNorm) {
  const TrainingStep step = test::step_of(two_products(", clip: value"));
  EXPECT_TRUE(kernels_of(step, "gradient_norm").empty());
  ASSERT_EQ(kernels_of(step, "clip").size(), 2u);
  EXPECT_EQ(kernels_of(step, "clip")[0].phase, Phase::update);
  // Over lists: all gradients from below, then from above.
  const auto lists =
      kernels_of(test::step_of(two_products(", clip: value"), {.update = UpdateKernels::foreach}), "clip");
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(lists[0].read_bytes, lists[1].read_bytes);
  EXPECT_GT(lists[0].read_bytes.fixed, kernels_of(step, "clip")[0].read_bytes.fixed);
}

TEST(Clip, NotUnlessAskedFor) { EXPECT_TRUE(kernels_of(test::step_of(two_products("")), "clip").empty()); }

// A store's copy of the weights is copied back after each update: 48 B read and written for each product.
TEST(Copies, FollowTheUpdate) {
  const TrainingStep step = test::step_of(two_products(""), {.parameter_copies = 1});
  ASSERT_EQ(kernels_of(step, "copy").size(), 2u);
  EXPECT_EQ(kernels_of(step, "copy")[0].read_bytes, fixed_size(48));
  EXPECT_EQ(step.kernels.back().op, "copy");
}

// 24 weights are sent in one copy, their gradients come back in one. The host reads and writes weights and
// reads gradients, 3 x 96 B at 40 B/ns; to clip by norm it reads gradients twice more and writes them once.
TEST(HostVariables, AreSentBeforeAndUpdatedAfter) {
  const Lowering host{.variables = Variables::host};
  const TrainingStep step = test::step_of(two_products(""), host);
  EXPECT_EQ(step.kernels.front().op, kHostToDevice);
  EXPECT_EQ(step.kernels.front().written_bytes, fixed_size(96));
  EXPECT_EQ(step.kernels.front().layer, -1);
  EXPECT_TRUE(is_copy_to_host(step.kernels.back()));
  EXPECT_EQ(step.kernels.back().read_bytes, fixed_size(96));
  EXPECT_EQ(step.kernels.back().host_nanoseconds, fixed_size(3 * 96 / 40));
  EXPECT_TRUE(kernels_of(step, "sgd").empty());
  const TrainingStep clipped = test::step_of(two_products(", clip: norm"), host);
  EXPECT_TRUE(kernels_of(clipped, "clip").empty());
  EXPECT_EQ(clipped.kernels.back().host_nanoseconds, fixed_size(6 * 96 / 40));
}

// A step that updates nothing brings nothing back.
TEST(HostVariables, ForwardOnly) {
  const TrainingStep step =
      test::step_of(two_products("", "[{graph: main, backward: none}]"), {.variables = Variables::host});
  EXPECT_EQ(step.kernels.front().op, kHostToDevice);
  EXPECT_FALSE(is_copy_to_host(step.kernels.back()));
}

// PyTorch up to 1.13: zero_grad() writes zeros (48 B for each product) before the pass, and autograd adds
// each new gradient, a temporary tensor, to the one that persists (2 x 48 B read, 48 B written).
TEST(ZeroGradients, AreFilledAndAddedTo) {
  const Lowering lowering{.weight_gradients = GradientStorage::persistent,
                          .step_gradients = GradientAccumulation::added,
                          .zero_gradients = true};
  const TrainingStep step = test::step_of(two_products(""), lowering);
  const auto fills = kernels_of(step, "fill");
  ASSERT_EQ(fills.size(), 2u);
  EXPECT_EQ(step.kernels[1].op, "fill");
  EXPECT_EQ(fills[0].read_bytes, Size{});
  EXPECT_EQ(fills[0].written_bytes, fixed_size(48));
  const auto sums = kernels_of(step, "accumulate");
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].read_bytes, fixed_size(96));
  EXPECT_EQ(sums[0].written_bytes, fixed_size(48));
  EXPECT_EQ(sums[0].scratch_bytes, fixed_size(48));
}

// apex's FusedAdam sets gradients to None.
TEST(ZeroGradients, NotWhereTheOptimizerSetsThemToNone) {
  const Lowering lowering{.step_gradients = GradientAccumulation::added, .zero_gradients = true};
  std::string text = test::model_text(
      "[4]", "      - {name: a, type: fully_connected, outputs: 3, bias: false}\n", "fused_adam");
  const TrainingStep step = test::step_of(test::model_from(text), lowering);
  EXPECT_TRUE(kernels_of(step, "fill").empty());
  EXPECT_TRUE(kernels_of(step, "accumulate").empty());
}

// Two passes accumulate before one update: zeros once, a sum after each.
TEST(ZeroGradients, OnceForEachUpdate) {
  const Lowering lowering{.step_gradients = GradientAccumulation::added, .zero_gradients = true};
  const TrainingStep step =
      test::step_of(two_products("", "[{graph: main, update: false, repeat: 2}, {graph: main}]"), lowering);
  const auto launches = [&](std::string_view op) {
    std::int64_t sum = 0;
    for (const Kernel& kernel : kernels_of(step, op)) sum += kernel.repeat;
    return sum;
  };
  EXPECT_EQ(launches("fill"), 2);
  EXPECT_EQ(launches("accumulate"), 3 * 2);
}

// Each pass casts the weights anew, for all its repeats.
TEST(Casts, InEveryPass) {
  const TrainingStep step = test::step_of(
      two_products("", "[{graph: main, backward: none, repeat: 5}, {graph: main}]"), {}, test::kFp16);
  std::vector<std::int64_t> repeats;
  for (const Kernel& cast : kernels_of(step, "cast")) {
    if (cast.phase == Phase::forward) repeats.push_back(cast.repeat);
  }
  EXPECT_THAT(repeats, testing::ElementsAre(5, 5, 1, 1));
}

// A table that a product shares is read in low precision, so it is cast.
TEST(Casts, TablesTiedToAProduct) {
  const Model model = test::small_model(
      "[7]",
      "      - {name: words, type: embedding, words: 10, outputs: 4}\n"
      "      - {name: logits, type: fully_connected, outputs: 10, bias: false, per_position: true, "
      "tied_to: words}\n");
  const auto casts = kernels_of(test::step_of(model, {}, test::kFp16), "cast");
  ASSERT_EQ(casts.size(), 2u);  // of the table and of its gradient
  EXPECT_EQ(casts[0].read_bytes, fixed_size(40 * 4));
}

}  // namespace
}  // namespace tbdsim
