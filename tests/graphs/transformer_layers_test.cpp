// Layers of today's transformers: what each lowering runs and keeps, counted by hand for a few positions.
#include <gmock/gmock.h>

#include "tests/graphs/work_fixture.h"

namespace tbdsim {
namespace {

using test::LayerBench;
using test::make_layer;
using test::per_sample;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const Precision& kBf16 = kPrecisions[4];

// 8 positions of 16 features: 128 elements, 512 B in fp32, 256 B in bf16.
const Shape kPositions{per_sample(1), {8, 16}};

Size read_by(const std::vector<Kernel>& kernels) {
  Size sum;
  for (const Kernel& k : kernels) sum += k.read_bytes * k.repeat;
  return sum;
}
Size written_by(const std::vector<Kernel>& kernels) {
  Size sum;
  for (const Kernel& k : kernels) sum += k.written_bytes * k.repeat;
  return sum;
}
std::int64_t launches(const std::vector<Kernel>& kernels) {
  std::int64_t sum = 0;
  for (const Kernel& k : kernels) sum += k.repeat;
  return sum;
}

// Composite in fp32: pow, mean, epsilon, rsqrt, mul, mul; in bf16 two casts more, and x is kept in fp32
// beside the normalised x.
TEST(RmsNorm, IsCompositeOrFused) {
  LayerBench bench{"{type: rms_norm}", {kPositions}};
  EXPECT_EQ(launches(bench.forward()), 6);
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(512 + 8 * 4));
  bench.precision = kBf16;
  EXPECT_EQ(launches(bench.forward()), 8);
  // cast 256 -> 512, pow 512 -> 512, mean 512 -> 32, two over statistics, mul 512 -> 512, cast 512 -> 256,
  // mul 256 -> 256.
  EXPECT_EQ(read_by(bench.forward()), per_sample(256 + 512 + 512 + 32 + 32 + 512 + 512 + 256));
  EXPECT_EQ(written_by(bench.forward()), per_sample(512 + 512 + 32 + 32 + 32 + 512 + 256 + 256));
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(512 + 256 + 8 * 4));
  bench.lowering.rms_norm = Composition::fused;
  EXPECT_EQ(launches(bench.forward()), 1);
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(8 * 4));
}

// PyTorch: gradients of x and of the weights apart. Joined: x and its gradient are read once, and sums of 256
// blocks of 16 numbers are written beside dx, which a second kernel adds up.
TEST(RmsNorm, MakesGradientsApartOrAtOnce) {
  LayerBench bench{"{type: rms_norm}", {kPositions}};
  bench.lowering.rms_norm = Composition::fused;
  EXPECT_EQ(read_by(bench.backward()), per_sample(4 * 512));
  EXPECT_FALSE(bench.backward()[0].holds_rows);
  bench.lowering.norm_kernels = NormKernels::held;
  EXPECT_EQ(read_by(bench.backward()), per_sample(4 * 512));
  EXPECT_TRUE(bench.backward()[0].holds_rows);
  bench.lowering.norm_kernels = NormKernels::joined;
  const Size sums = fixed_size(256 * 16 * 4);
  ASSERT_EQ(bench.backward().size(), 2u);
  EXPECT_EQ(read_by(bench.backward()), per_sample(2 * 512) + sums);
  EXPECT_EQ(bench.backward()[0].written_bytes, per_sample(512) + sums);
  EXPECT_TRUE(bench.forward()[0].holds_rows);
  bench.weight_gradient = false;
  EXPECT_EQ(read_by(bench.backward()), per_sample(2 * 512));
}

TEST(RmsNorm, NormalisesEachHead) {
  const LayerBench bench{"{type: rms_norm, heads: 4}", {kPositions}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs).at(0).elements, 4);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(512 + 8 * 4 * 4));
  EXPECT_THAT([] { LayerBench("{type: rms_norm, heads: 3}", {kPositions}); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("expected a multiple of 3 heads")));
}

// Four of the 8 features of each of 2 heads are turned: half of them.
TEST(Rotary, TurnsAllOrSomeFeatures) {
  LayerBench all{"{type: rotary, heads: 2}", {kPositions}};
  EXPECT_EQ(launches(all.forward()), 5);
  // mul 512, neg 256, concat 512, mul 512, add 1024 -> 512
  EXPECT_EQ(read_by(all.forward()), per_sample(512 + 256 + 512 + 512 + 1024));
  LayerBench some{"{type: rotary, heads: 2, rotated: 4}", {kPositions}};
  EXPECT_EQ(launches(some.forward()), 6);  // and joined with the rest, 512
  EXPECT_EQ(read_by(some.forward()), per_sample((512 + 256 + 512 + 512 + 1024) / 2 + 512));
  some.lowering.rotary = Composition::fused;
  EXPECT_EQ(launches(some.forward()), 1);
  EXPECT_THAT([] { LayerBench("{type: rotary, heads: 2, rotated: 10}", {kPositions}); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("at least 10, which are rotated")));
}

// 4 heads of 4 features for queries, 2 for keys and values: q 16 features, k and v 8 each.
const std::vector<Shape> kGrouped{kPositions, {per_sample(1), {8, 8}}, {per_sample(1), {8, 8}}};

TEST(Attention, KeepsNoScoresInOneKernel) {
  LayerBench bench{"{type: attention, heads: 4, kv_heads: 2, causal: true}", kGrouped};
  bench.precision = kBf16;
  ASSERT_EQ(bench.forward().size(), 1U);
  const Kernel kernel = bench.forward()[0];
  const auto shape = std::get<AttentionShape>(kernel.shape);
  EXPECT_EQ(shape.queries_per_key, 2);
  EXPECT_EQ(shape.kernel, AttentionKernel::flash2);
  // 4 heads x 8 x 8 scores x (4 + 4) multiply-adds; half of the scores are computed.
  EXPECT_EQ(kernel.macs, per_sample(4 * 64 * 8));
  EXPECT_EQ(kernel.flops, per_sample(4 * 32 * (2 * 8 + kSoftmaxFlops)));
  EXPECT_EQ(bench.backward()[0].macs, per_sample(4 * 64 * (3 * 4 + 2 * 4)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_TRUE(bench.needs().output);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(4 * 8 * 4));  // one number for each query and head
  bench.precision = kPrecisions[0];
  EXPECT_EQ(std::get<AttentionShape>(bench.forward()[0].shape).kernel, AttentionKernel::memory_efficient);
}

// Copies of keys and values for each head of queries are kept beside the inputs.
TEST(Attention, RepeatsSharedKeysWhereTheProgramDoes) {
  LayerBench bench{"{type: attention, heads: 4, kv_heads: 2, causal: true}", kGrouped};
  bench.precision = kBf16;
  bench.lowering.repeat_keys = true;
  EXPECT_EQ(bench.forward().size(), 3U);
  EXPECT_EQ(std::get<AttentionShape>(bench.forward()[2].shape).queries_per_key, 1);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(4 * 8 * 4 + 2 * 8 * 16 * 2));
}

// Apart: q, k and v copied (256 B each in bf16), 256 scores with probabilities in fp32 and bf16.
TEST(Attention, KeepsProbabilitiesApart) {
  LayerBench bench{"{type: attention, heads: 4, kv_heads: 2, causal: true, keep: 0.9}", kGrouped};
  bench.precision = kBf16;
  bench.lowering.attention = AttentionKernels::eager;
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(3 * 256 + 256 * (4 + 2) + 256 * (2 + 1)));
  bench.lowering.attention = AttentionKernels::math;
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(3 * 256 + 256 * 2 + 256 * (2 + 1)));
}

// Forward two products with a softmax and dropout between them; backward four products and those two again.
// Inputs are read again, and no copy of them is kept.
TEST(Attention, StridedProductsCopyNothing) {
  LayerBench bench{"{type: attention, heads: 4, causal: true, keep: 0.9, strided: true}",
                   {kPositions, kPositions, kPositions}};
  bench.precision = kBf16;
  bench.lowering.attention = AttentionKernels::math;
  EXPECT_EQ(launches(bench.forward()), 4);
  EXPECT_EQ(launches(bench.backward()), 6);
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(256 * 2 + 256 * (2 + 1)));
}

TEST(Attention, SeesAWindow) {
  LayerBench bench{"{type: attention, heads: 4, kv_heads: 2, causal: true, window: 2}", kGrouped};
  bench.precision = kBf16;
  EXPECT_EQ(bench.forward()[0].flops, per_sample(4 * 8 * 2 * (2 * 8 + kSoftmaxFlops)));
}

// Queries and keys of 6 features, of which 2 are the same for all heads; values of 4: k and v of a head lie
// in 4 + 4.
TEST(Attention, SharesFeaturesOfKeys) {
  const Shape q{per_sample(1), {8, 24}}, kv{per_sample(1), {8, 32}}, shared{per_sample(1), {8, 2}};
  LayerBench bench{"{type: attention, heads: 4, causal: true, shared: 2}", {q, kv, shared}};
  bench.precision = kBf16;
  EXPECT_EQ(bench.output.dims, (std::vector<std::int64_t>{8, 16}));
  ASSERT_EQ(bench.forward().size(), 2U);  // keys are put together before it
  EXPECT_EQ(std::get<AttentionShape>(bench.forward()[1].shape).features, 6);
  EXPECT_EQ(std::get<AttentionShape>(bench.forward()[1].shape).values, 4);
}

TEST(Attention, RejectsHeadsThatDoNotDivide) {
  EXPECT_THAT([] { (void)make_layer("{type: attention, heads: 6, kv_heads: 4}"); },
              ThrowsMessage<std::exception>(HasSubstr("does not divide the 6 heads of queries")));
  EXPECT_THAT(
      [] {
        LayerBench("{type: attention, heads: 5}", {kPositions, kPositions, kPositions});
      },
      ThrowsMessage<ShapeMismatch>(HasSubstr("queries have 16 features; expected a multiple of 5 heads")));
}

TEST(GatedActivation, ReadsOneTensorOrTwo) {
  LayerBench two{"{type: gated_activation, function: silu}", {kPositions, kPositions}};
  EXPECT_EQ(two.output, kPositions);
  EXPECT_EQ(launches(two.forward()), 2);
  EXPECT_EQ(two.needs().extra_bytes, per_sample(512));  // the gate's activation
  two.lowering.gated = Composition::fused;
  EXPECT_EQ(launches(two.forward()), 1);
  EXPECT_EQ(two.needs().extra_bytes, Size{});
  const LayerBench one{"{type: gated_activation, function: gelu}", {kPositions}};
  EXPECT_EQ(one.output.dims.back(), 8);
}

TEST(LearnedPositions, RejectsALongerSequence) {
  EXPECT_THAT([] { LayerBench("{type: learned_positions, positions: 7}", {kPositions}); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("sequence has 8 positions; expected at most 7")));
}

// 8 positions with 16 scores. Eager: the log softmax in fp32 is kept with the scores.
TEST(CrossEntropy, HasFormsOfItsOwn) {
  LayerBench bench{"{type: cross_entropy}", {kPositions}};
  bench.precision = kBf16;
  EXPECT_EQ(bench.output.dims, (std::vector<std::int64_t>{8}));
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(512));
  EXPECT_EQ(launches(bench.backward()), 4);
  bench.lowering.loss = LossKernels::fused;
  EXPECT_EQ(launches(bench.forward()), 1);
  EXPECT_TRUE(bench.backward().empty());
  EXPECT_EQ(bench.needs().extra_bytes, Size{});
  bench.lowering.loss = LossKernels::chunked;
  for (const Kernel& kernel : bench.forward()) EXPECT_EQ(kernel.repeat, 8);
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(256 / 8));
  bench.lowering.loss = LossKernels::vocabulary_parallel;
  EXPECT_EQ(launches(bench.forward()), 6) << "cast, maximum, difference, exponential, sum, division";
  EXPECT_EQ(launches(bench.backward()), 2);
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(512)) << "the softmax in fp32";
}

// 8 positions choose 2 of 4 experts: 16 rows, 4 of each expert.
TEST(Experts, GetEqualShares) {
  const Shape weights{per_sample(1), {8, 2}};
  const LayerBench dispatch{"{type: dispatch}", {kPositions, weights}};
  EXPECT_EQ(dispatch.output.dims, (std::vector<std::int64_t>{16, 16}));
  const LayerBench padded{"{type: dispatch, capacity: 1.25}", {kPositions, weights}};
  EXPECT_EQ(padded.output.dims[0], 20);
  const LayerBench product{"{type: expert_products, experts: 4, outputs: 32}", {dispatch.output}};
  EXPECT_EQ(product.layer->parameters(product.inputs).at(0).elements, 4 * 16 * 32);
  const Kernel kernel = product.forward()[0];
  EXPECT_EQ(kernel.macs, per_sample(16 * 16 * 32));
  EXPECT_TRUE(std::get<GemmShape>(kernel.shape).grouped);
  EXPECT_EQ(std::get<GemmShape>(kernel.shape).n, per_sample(4));
  const LayerBench combine{"{type: combine}", {product.output, weights}};
  EXPECT_EQ(combine.output.dims, (std::vector<std::int64_t>{8, 32}));
}

}  // namespace
}  // namespace tbdsim
