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
