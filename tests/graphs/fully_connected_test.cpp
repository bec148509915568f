// fully_connected and softmax_loss: the end of a classifier.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::per_sample;
using test::Work;
using test::works_of;
using testing::ElementsAre;
using testing::IsEmpty;

// 4x2x2 = 16 inputs, 10 outputs: 160 weights (640 B), 10 biases (40 B); 160 multiply-adds a row; x 64 B, y 40
// B.
LayerBench classifier() { return {"{type: fully_connected, outputs: 10}", {image(4, 2, 2)}}; }

Work product(Phase phase, Size read, Size written) {
  return {"matmul", KernelKind::gemm, phase, per_sample(320), per_sample(160), read, written, {}};
}

const Work kBiasGradient{"bias_gradient",
                         KernelKind::reduction,
                         Phase::backward_weights,
                         per_sample(10),
                         {},
                         per_sample(40),
                         {40, 0},
                         {}};

TEST(FullyConnected, ShapeAndParameters) {
  const LayerBench bench = classifier();
  EXPECT_EQ(bench.output, test::vector(10));
  const auto parameters = bench.layer->parameters(bench.inputs);
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].elements, 160);
  EXPECT_EQ(parameters[1].elements, 10);
  EXPECT_TRUE(parameters[0].trained && parameters[0].cast && parameters[1].trained && parameters[1].cast);
}

TEST(FullyConnected, KernelsOfEachPhase) {
  const LayerBench bench = classifier();
  const auto forward = bench.forward();
  const auto backward = bench.backward();
  EXPECT_THAT(works_of(forward), ElementsAre(product(Phase::forward, Size{640, 64}, per_sample(40)),
                                             Work{"bias_add",
                                                  KernelKind::elementwise,
                                                  Phase::forward,
                                                  per_sample(10),
                                                  {},
                                                  per_sample(40),
                                                  per_sample(40),
                                                  {}}));
  EXPECT_THAT(works_of(backward),
              ElementsAre(kBiasGradient, product(Phase::backward_weights, per_sample(64 + 40), Size{640, 0}),
                          product(Phase::backward_data, Size{640, 40}, per_sample(64))));
  // Y = W' X, dW = X dY', dX = W dY with a column for each row of the batch.
  const Size in{16, 0}, out{10, 0}, rows{0, 1};
  EXPECT_EQ(std::get<GemmShape>(forward[0].shape),
            (GemmShape{.m = out, .n = rows, .k = in, .transpose_a = true}));
  EXPECT_EQ(std::get<GemmShape>(backward[1].shape),
            (GemmShape{.m = in, .n = out, .k = rows, .transpose_b = true}));
  EXPECT_EQ(std::get<GemmShape>(backward[2].shape), (GemmShape{.m = in, .n = rows, .k = out}));
}

TEST(FullyConnected, WithoutBias) {
  const LayerBench bench{"{type: fully_connected, outputs: 10, bias: false}", {image(4, 2, 2)}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs).size(), 1u);
  EXPECT_EQ(bench.forward().size(), 1u);
  EXPECT_EQ(bench.backward().size(), 2u);
}

TEST(FullyConnected, OnlyTheGradientsNeeded) {
  LayerBench bench = classifier();
  bench.input_gradient = false;
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(kBiasGradient, product(Phase::backward_weights, per_sample(104), Size{640, 0})));
  EXPECT_TRUE(bench.needs().inputs);
  bench.input_gradient = true;
  bench.weight_gradient = false;
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(product(Phase::backward_data, Size{640, 40}, per_sample(64))));
  EXPECT_FALSE(bench.needs().inputs);
}

// 64 regions of each image are 64 rows: 64 * 160 multiply-adds for a sample of the batch.
TEST(FullyConnected, RowsMayBeRegions) {
  const LayerBench bench{"{type: fully_connected, outputs: 10}", {Shape{per_sample(64), {16}}}};
  EXPECT_EQ(bench.output, (Shape{per_sample(64), {10}}));
  EXPECT_EQ(bench.forward()[0].macs, per_sample(64 * 160));
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 160);  // shared by all rows
}

// 10 classes: maximum, difference, exponential, sum, division: 5 operations each; backward p - one_hot: 1.
// Reads and writes 40 B each way. Backward reads its own output.
TEST(SoftmaxLoss, KernelsOfEachPhase) {
  LayerBench bench{"{type: softmax_loss}", {test::vector(10)}};
  EXPECT_EQ(bench.output, test::vector(10));
  const auto softmax = [](Phase phase, std::int64_t flops) {
    return Work{"softmax_loss", KernelKind::softmax, phase, per_sample(flops), {},
                per_sample(40), per_sample(40),      {}};
  };
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(softmax(Phase::forward, 50)));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(softmax(Phase::backward_data, 10)));
  EXPECT_TRUE(bench.needs().output);
  EXPECT_FALSE(bench.needs().inputs);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_FALSE(bench.needs().output);
}

TEST(SoftmaxLoss, WantsOneScoreForEachClass) {
  const auto layer = test::make_layer("{type: softmax_loss}");
  const std::vector<Shape> picture{image(4, 2, 2)};
  EXPECT_THROW((void)layer->output_shape(picture), ShapeMismatch);
}

}  // namespace
}  // namespace tbdsim
