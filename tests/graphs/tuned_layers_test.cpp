// Layers that tuned programs run as one kernel: dropout with its neighbours, losses, scores; and those of
// diffusion and recommendation networks.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"
#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::per_sample;
using test::vector;
using test::Work;
using test::works_of;
using testing::ElementsAre;
using testing::HasSubstr;

// 16 numbers of 4 B a sample: x, residual in; y and a byte of mask for each out.
TEST(FusedDropout, WithTheSumOfAResidual) {
  const LayerBench bench{"{type: dropout_add, keep: 0.9}", {vector(16), vector(16)}};
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(Work{"dropout_add",
                                                          KernelKind::elementwise,
                                                          Phase::forward,
                                                          per_sample(48),
                                                          {},
                                                          per_sample(128),
                                                          per_sample(80),
                                                          {}}));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(Work{"dropout_add",
                                                           KernelKind::elementwise,
                                                           Phase::backward_data,
                                                           per_sample(32),
                                                           {},
                                                           per_sample(80),
                                                           per_sample(64),
                                                           {}}));
  EXPECT_THROW((void)LayerBench("{type: dropout_add, keep: 0.9}", {vector(16), vector(8)}), ShapeMismatch);
  EXPECT_THROW((void)LayerBench("{type: relu_dropout, keep: 0.9}", {vector(16), vector(16)}), ShapeMismatch);
}

TEST(FusedDropout, BehindARelu) {
  const LayerBench bench{"{type: relu_dropout, keep: 0.9}", {vector(16)}};
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(64));
  EXPECT_EQ(bench.layer->backward_needs(bench.site(), {bench.lowering, bench.precision}).extra_bytes,
            per_sample(16));
}

// 3 channels of 2 x 2 pixels, 48 B, and 3 numbers, 12 B; backward their sum over pixels.
TEST(ChannelAdd, AddsANumberToEachPixelOfAChannel) {
  const LayerBench bench{"{type: channel_add}", {image(3, 2, 2), vector(3)}};
  EXPECT_EQ(bench.output, image(3, 2, 2));
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(60));
  EXPECT_EQ(bench.backward()[0].written_bytes, per_sample(12));
  EXPECT_THROW((void)LayerBench("{type: channel_add}", {image(3, 2, 2), vector(4)}), ShapeMismatch);
}

// Five values of two categories, rows of 4: 80 B of rows and 20 B of indices are read, 32 B written.
TEST(Embedding, RowsOfACategoryAreSummed) {
  const LayerBench bench{"{type: embedding, words: 100, outputs: 4, sparse: true, summed_to: 2}",
                         {vector(5)}};
  EXPECT_EQ(bench.output, (Shape{per_sample(1), {2, 4}}));
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(100));
  EXPECT_EQ(bench.forward()[0].written_bytes, per_sample(32));
  EXPECT_EQ(bench.backward()[0].written_bytes, per_sample(80));  // a gradient for each row
  EXPECT_THAT(test::message_of<ShapeMismatch>([] {
                (void)LayerBench("{type: embedding, words: 9, outputs: 4, summed_to: 6}", {vector(5)});
              }),
              HasSubstr("expected a row or more for each of 6 sums"));
}

// Ten rows are looked up, three of which differ: four passes sort indices and places (8 B of each, 40 + 40 B
// a pass), then each of ten vectors of 16 B is read in its order and three rows are written.
TEST(Embedding, GradientsOfARowAreAddedUp) {
  const LayerBench bench{"{type: embedding, words: 100, outputs: 4, sparse: true, summed_to: 2, distinct: 3}",
                         {vector(10)}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].gradient_rows, per_sample(12));
  const std::vector<Kernel> backward = bench.backward();
  ASSERT_EQ(backward.size(), 2u);
  EXPECT_EQ(backward[0].op, "sort");
  EXPECT_EQ(backward[0].read_bytes, per_sample(320));
  EXPECT_EQ(backward[1].read_bytes, per_sample(160 + 80));
  EXPECT_EQ(backward[1].written_bytes, per_sample(48));
  EXPECT_THAT(test::message_of<ShapeMismatch>([] {
                (void)LayerBench("{type: embedding, words: 9, outputs: 4, sparse: true, distinct: 6}",
                                 {vector(5)});
              }),
              HasSubstr("expected a row or more for each of 6 that differ"));
}

// Three tensors of 64 B: one kernel forward and one backward, or a product and a sum, and two products.
TEST(MultiplyAdd, InOneKernelOrInTwo) {
  const std::vector<Shape> inputs(3, vector(16));
  const LayerBench fused{"{type: multiply_add, fused: true}", inputs};
  ASSERT_EQ(fused.forward().size(), 1u);
  EXPECT_EQ(fused.forward()[0].read_bytes, per_sample(192));
  ASSERT_EQ(fused.backward().size(), 1u);
  EXPECT_EQ(fused.backward()[0].read_bytes, per_sample(192));
  EXPECT_EQ(fused.backward()[0].written_bytes, per_sample(128));
  const LayerBench composite{"{type: multiply_add}", inputs};
  EXPECT_EQ(composite.forward().size(), 2u);
  EXPECT_EQ(composite.backward().size(), 2u);
  EXPECT_THROW((void)LayerBench("{type: multiply_add}", {vector(16), vector(16), vector(8)}), ShapeMismatch);
}

// 8 channels of 2 x 2 pixels are 128 B: read and written once forward; backward x and dy are read, and dx and
// 64 B of sums over channels written.
TEST(GroupNorm, InOneKernelWithSilu) {
  const LayerBench bench{"{type: group_norm, groups: 2, joined: true, silu: true}", {image(8, 2, 2)}};
  ASSERT_EQ(bench.forward().size(), 1u);
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(128));
  EXPECT_EQ(bench.forward()[0].written_bytes, per_sample(128));
  ASSERT_EQ(bench.backward().size(), 1u);
  EXPECT_EQ(bench.backward()[0].read_bytes, per_sample(256));
  EXPECT_EQ(bench.backward()[0].written_bytes, per_sample(128 + 64));
  EXPECT_THROW((void)test::make_layer("{type: group_norm, groups: 2, silu: true}"), SpecError);
}

// Five edges between 4 sources and 2 targets of 8 numbers: forward five vectors, five indices and the targets
// are read (160 + 20 + 64 B), backward a source and its gradient for each edge, targets and their gradients,
// after gradients of the sources (128 B) were zeroed; vectors of both ends and a bias are trained.
TEST(NeighbourAttention, ReadsAVectorForEachEdge) {
  const std::vector<Shape> inputs{Shape{per_sample(1), {4, 8}}, Shape{per_sample(1), {2, 8}}};
  const LayerBench bench{"{type: neighbour_attention, edges: 5, heads: 2}", inputs};
  EXPECT_EQ(bench.output, inputs[1]);
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(160 + 20 + 64));
  EXPECT_EQ(bench.forward()[0].written_bytes, per_sample(64));
  ASSERT_EQ(bench.backward().size(), 3u);
  EXPECT_EQ(bench.backward()[1].written_bytes, per_sample(128));
  EXPECT_EQ(bench.backward().back().read_bytes, per_sample(320 + 20 + 128));
  EXPECT_EQ(bench.backward().back().written_bytes, per_sample(160 + 64));
  EXPECT_EQ(bench.layer->parameters(inputs)[0].elements, 16);
  EXPECT_THROW((void)LayerBench("{type: neighbour_attention, edges: 5, heads: 3}", inputs), ShapeMismatch);
}

// `loss: fused`: scores are read once forward, and once more for their gradient.
TEST(SmoothedLoss, FusedItIsAKernelForEachPass) {
  LayerBench bench{"{type: smoothed_softmax_loss}", {vector(10)}};
  bench.lowering.loss = LossKernels::fused;
  ASSERT_EQ(bench.forward().size(), 1u);
  EXPECT_EQ(bench.forward()[0].read_bytes, per_sample(40));
  ASSERT_EQ(bench.backward().size(), 1u);
  EXPECT_EQ(bench.backward()[0].read_bytes, per_sample(40));
  EXPECT_EQ(bench.backward()[0].written_bytes, per_sample(40));
}

// 5 queries and 7 keys of 3 numbers: 60 + 84 B in, 35 scores out, 35 * 3 multiply-adds.
TEST(AdditiveScore, FusedItKeepsNoHiddenVectors) {
  const LayerBench bench{"{type: additive_score, normalize: true, fused: true}",
                         {Shape{per_sample(1), {5, 3}}, Shape{per_sample(1), {7, 3}}}};
  const auto forward = bench.forward();
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0].read_bytes, per_sample(144));
  EXPECT_EQ(forward[0].written_bytes, per_sample(140));
  EXPECT_EQ(forward[0].macs, per_sample(105));
  const auto backward = bench.backward();
  ASSERT_EQ(backward.size(), 1u);
  EXPECT_EQ(backward[0].written_bytes, per_sample(144));
}

}  // namespace
}  // namespace tbdsim
