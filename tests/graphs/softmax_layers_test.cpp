// Softmax, losses, dropout and activations of attention models, fused and composite; tables kept in shards.
#include <gmock/gmock.h>

#include "tests/graphs/work_fixture.h"

namespace tbdsim {
namespace {

using test::LayerBench;
using test::moving;
using test::per_sample;
using test::Traffic;
using test::traffic_of;
using test::works_of;
using testing::ElementsAre;
using testing::IsEmpty;

// 3 positions with 10 scores each: 30 elements, 120 B in fp32; statistics of 3 positions are 12 B.
const Shape kScores{per_sample(1), {3, 10}};

// Forward 5 operations an element, backward y dy, its sum, difference and product: 4; reads y and dy.
TEST(Softmax, Fused) {
  LayerBench bench{"{type: softmax}", {kScores}};
  EXPECT_EQ(bench.output, kScores);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("softmax", KernelKind::softmax, Phase::forward,
                                                            150, per_sample(120), per_sample(120))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("softmax", KernelKind::softmax, Phase::backward_data, 120, per_sample(240),
                                 per_sample(120))));
  EXPECT_EQ(std::get<MatrixShape>(bench.forward()[0].shape), (MatrixShape{per_sample(3), 10}));
  EXPECT_TRUE(bench.needs().output);
  EXPECT_FALSE(bench.needs().inputs);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_FALSE(bench.needs().output);
}

// Maximum (reads x), exponential (reads, writes), sum (reads), its inverse (statistics), product (reads,
// writes). Backward y dy (2 reads, 1 write), its sum (1 read), dy less that (1, 1), times y (2, 1).
TEST(Softmax, Composite) {
  LayerBench bench{"{type: softmax}", {kScores}};
  bench.lowering.softmax = Composition::composite;
  EXPECT_EQ(traffic_of(bench.forward()),
            (Traffic{5, per_sample(4 * 120 + 12), per_sample(2 * 120 + 3 * 12)}));
  EXPECT_EQ(traffic_of(bench.backward()), (Traffic{4, per_sample(6 * 120), per_sample(3 * 120 + 12)}));
}

// PyTorch: log-softmax (1 read, 1 write), the sum of all (1 read, 12 B written), 10 kernels over positions.
// Backward 11 such, the label's gradient into zeros (1 write), the sum's added (1, 1), log-softmax's (2, 1).
TEST(SmoothedSoftmaxLoss, Fused) {
  LayerBench bench{"{type: smoothed_softmax_loss}", {kScores}};
  EXPECT_TRUE(bench.layer->is_loss());
  EXPECT_EQ(traffic_of(bench.forward()), (Traffic{12, per_sample(240 + 10 * 12), per_sample(120 + 11 * 12)}));
  EXPECT_EQ(traffic_of(bench.backward()),
            (Traffic{14, per_sample(3 * 120 + 12 * 12), per_sample(3 * 120 + 11 * 12)}));
  EXPECT_TRUE(bench.needs().output);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

// Scores of 60 B in half precision, logarithms of 120 B: log-softmax (60 read, 120 written), their sum;
// backward the label's gradient (120 written), the sum's added to it, log-softmax's (240 read, 60 written).
TEST(SmoothedSoftmaxLoss, LogarithmsAreFp32InHalfPrecision) {
  LayerBench bench{"{type: smoothed_softmax_loss}", {kScores}};
  bench.precision = test::kFp16;
  EXPECT_EQ(traffic_of(bench.forward()),
            (Traffic{12, per_sample(60 + 120 + 10 * 12), per_sample(120 + 11 * 12)}));
  EXPECT_EQ(traffic_of(bench.backward()),
            (Traffic{14, per_sample(120 + 240 + 12 * 12), per_sample(2 * 120 + 60 + 11 * 12)}));
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(60)) << "beside the output of 60 B";
}

// The gradient of a mean over the classes is written out (120 B) and read again.
TEST(SmoothedSoftmaxLoss, OfTheMeanOverClasses) {
  const LayerBench sum{"{type: smoothed_softmax_loss}", {kScores}};
  const LayerBench mean{"{type: smoothed_softmax_loss, classes: mean}", {kScores}};
  EXPECT_EQ(traffic_of(mean.forward()), traffic_of(sum.forward()));
  EXPECT_EQ(traffic_of(mean.backward()),
            (Traffic{15, per_sample(4 * 120 + 13 * 12), per_sample(4 * 120 + 11 * 12)}));
}

// Registers hold rows of up to 1,024 scores: of longer ones the gradient is read twice.
TEST(SmoothedSoftmaxLoss, LongRowsAreReadAgain) {
  const LayerBench held{"{type: smoothed_softmax_loss}", {Shape{per_sample(1), {1, 1'024}}}};
  const LayerBench longer{"{type: smoothed_softmax_loss}", {Shape{per_sample(1), {1, 1'025}}}};
  EXPECT_EQ(held.backward().back().read_bytes, per_sample(2 * 4'096));
  EXPECT_EQ(longer.backward().back().read_bytes, per_sample(3 * 4'100));
}

// tensor2tensor: targets of all classes (1 write), maximum (1 read), difference (1, 1), sum of exponentials
// (1 read), logarithm (statistics), targets times it (2, 1) and its sum (1 read), probabilities less targets
// (2, 1), four kernels over losses. Backward two such, and the product with the loss's gradient (1, 1).
TEST(SmoothedSoftmaxLoss, CompositeHasTargetsOfAllClasses) {
  LayerBench bench{"{type: smoothed_softmax_loss}", {kScores}};
  bench.lowering.softmax = Composition::composite;
  EXPECT_EQ(traffic_of(bench.forward()),
            (Traffic{12, per_sample(8 * 120 + 6 * 12), per_sample(4 * 120 + 8 * 12)}));
  EXPECT_EQ(bench.forward()[0].scratch_bytes, per_sample(240));
  EXPECT_EQ(traffic_of(bench.backward()), (Traffic{3, per_sample(120 + 2 * 12), per_sample(120 + 2 * 12)}));
}

// Random numbers (1 write), times their range, plus their begin, plus keep, floor (1 read, 1 write each), x /
// keep (1, 1), product (2, 1). Backward dy times the mask (2, 1), / keep (1, 1). The mask is kept in fp32.
TEST(Dropout, Composite) {
  LayerBench bench{"{type: dropout, keep: 0.9}", {kScores}};
  bench.lowering.dropout = Composition::composite;
  EXPECT_EQ(traffic_of(bench.forward()), (Traffic{7, per_sample(7 * 120), per_sample(7 * 120)}));
  EXPECT_EQ(traffic_of(bench.backward()), (Traffic{2, per_sample(3 * 120), per_sample(2 * 120)}));
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(120));
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

// 5 operations an element forward and 11 backward (see gelu.cpp), which reads x and dy.
TEST(Gelu, KernelsOfEachPhase) {
  LayerBench bench{"{type: gelu}", {kScores}};
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("gelu", KernelKind::elementwise, Phase::forward,
                                                            150, per_sample(120), per_sample(120))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("gelu", KernelKind::elementwise, Phase::backward_data, 330, per_sample(240),
                                 per_sample(120))));
  EXPECT_TRUE(bench.needs().inputs);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

// x / sqrt 2, erf, + 1, x / 2 (1 read, 1 write each) and their product (2, 1). Backward of both factors (2 x
// (2, 1)), of erf (pow, neg, exp, times a constant: 4 x (1, 1), times dy: (2, 1)), / sqrt 2 and / 2 (1, 1),
// sum (2, 1). Kept: what goes into erf, both factors.
TEST(Gelu, Composite) {
  LayerBench bench{"{type: gelu}", {kScores}};
  bench.lowering.gelu = Composition::composite;
  EXPECT_EQ(traffic_of(bench.forward()), (Traffic{5, per_sample(6 * 120), per_sample(5 * 120)}));
  EXPECT_EQ(traffic_of(bench.backward()), (Traffic{10, per_sample(14 * 120), per_sample(10 * 120)}));
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(3 * 120));
  EXPECT_FALSE(bench.needs().inputs);
  bench.lowering.product_keeps = SavedMatmulInputs::both;  // x * 0.5 keeps x as well
  EXPECT_TRUE(bench.needs().inputs);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

TEST(Scale, KeepsXWhereProductsKeepBothFactors) {
  LayerBench bench{"{type: scale}", {kScores}};
  bench.lowering.product_keeps = SavedMatmulInputs::both;
  EXPECT_TRUE(bench.needs().inputs);
  bench.input_gradient = false;
  EXPECT_FALSE(bench.needs().inputs);
}

TEST(Scale, OneProductEachWay) {
  const LayerBench bench{"{type: scale}", {kScores}};
  EXPECT_EQ(traffic_of(bench.forward()), (Traffic{1, per_sample(120), per_sample(120)}));
  EXPECT_EQ(traffic_of(bench.backward()), (Traffic{1, per_sample(120), per_sample(120)}));
  EXPECT_FALSE(bench.needs().inputs || bench.needs().output);
  std::vector<Kernel> second;
  bench.layer->double_backward(bench.site(), {bench.lowering, bench.precision}, second);
  EXPECT_EQ(traffic_of(second), (Traffic{1, per_sample(120), per_sample(120)}));
}

// A table of 7 x 10: 70 elements, 280 B, of which 3 rows (120 B) are looked up by indices of 4 B. A dense
// gradient is zeroed, then read and written at those rows. Shards are joined before and their gradients taken
// apart after, 280 B read and written each, and the joined table is kept.
TEST(Embedding, DenseGradientAndShards) {
  const Shape words{per_sample(1), {3}};
  LayerBench dense{"{type: embedding, words: 7, outputs: 10, dense_gradient: true}", {words}};
  dense.lowering.embedding_gradient = TableGradient::sparse;
  EXPECT_EQ(traffic_of(dense.backward()), (Traffic{2, per_sample(252), {280, 120}}));
  EXPECT_EQ(dense.layer->parameters(dense.inputs)[0].gradient_rows, Size{});
  EXPECT_EQ(dense.needs().extra_bytes, Size{});
  LayerBench shards{"{type: embedding, words: 7, outputs: 10, shards: 2}", {words}};
  EXPECT_EQ(traffic_of(shards.forward()), (Traffic{2, {280, 132}, {280, 120}}));
  EXPECT_EQ(traffic_of(shards.backward()), (Traffic{3, {280, 252}, {560, 120}}));
  EXPECT_EQ(shards.needs().extra_bytes, fixed_size(280));
}

}  // namespace
}  // namespace tbdsim
