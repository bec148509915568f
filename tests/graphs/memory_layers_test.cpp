// Layers limited by the memory they move: norms, activations, poolings, joins.
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

// 5 channels of 4x6: 120 elements, 480 B in fp32.
const Shape kImage = image(5, 4, 6);
constexpr std::int64_t kElements = 120;
constexpr Size kBytes{0, 480};

Work moving(std::string_view op, KernelKind kind, Phase phase, std::int64_t flops, Size read, Size written) {
  return {op, kind, phase, per_sample(flops), {}, read, written, {}};
}

// Statistics of all of x come before the first y, so x is read twice: forward 6 operations an element (see
// batch_norm.cpp), 2 reads, 1 write. Backward 9 operations, x and dy twice each, 1 write.
TEST(BatchNorm, KernelsOfEachPhase) {
  const LayerBench bench{"{type: batch_norm}", {kImage}};
  EXPECT_EQ(bench.output, kImage);
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("batch_norm", KernelKind::batch_norm, Phase::forward, 6 * kElements,
                                 kBytes * 2, kBytes)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("batch_norm", KernelKind::batch_norm, Phase::backward_data, 9 * kElements,
                                 kBytes * 4, kBytes)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_FALSE(bench.needs().output);
}

// Norms that take NCHW: NHWC images are copied, x and y forward, x, dy and dx backward.
TEST(BatchNorm, TransposesAroundKernelsOfNchw) {
  LayerBench bench{"{type: batch_norm}", {kImage}};
  bench.lowering.norm_layout = NormLayout::nchw;
  const auto ops = [](const std::vector<Kernel>& kernels) {
    std::string text;
    for (const Kernel& kernel : kernels) text += std::string(kernel.op) + " ";
    return text;
  };
  EXPECT_EQ(ops(bench.forward()), "batch_norm ");
  bench.lowering.layout = Layout::nhwc;
  EXPECT_EQ(ops(bench.forward()), "nhwc_nchw batch_norm nhwc_nchw ");
  EXPECT_EQ(ops(bench.backward()), "nhwc_nchw nhwc_nchw batch_norm nhwc_nchw ");
  EXPECT_EQ(bench.forward()[1].scratch_bytes, kBytes * 2);
  EXPECT_EQ(bench.backward()[2].scratch_bytes, kBytes * 3);
  bench.input_gradient = false;
  EXPECT_EQ(ops(bench.backward()), "nhwc_nchw nhwc_nchw batch_norm ");
  bench.lowering.norm_layout = NormLayout::any;
  EXPECT_EQ(ops(bench.forward()), "batch_norm ");
}

// Without an input gradient only the two sums over x and dy are left: each is read once, nothing large
// written.
TEST(BatchNorm, FirstLayerOnlySums) {
  LayerBench bench{"{type: batch_norm}", {kImage}};
  bench.input_gradient = false;
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("batch_norm", KernelKind::batch_norm, Phase::backward_weights, 9 * kElements,
                                 kBytes * 2, {})));
}

// A gamma and a beta for each channel, unless left out; mean and variance are kept but not trained. Norms
// compute in fp32 and are never cast.
TEST(BatchNorm, Parameters) {
  const std::vector<Shape> inputs{kImage};
  const auto all = test::make_layer("{type: batch_norm}")->parameters(inputs);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "gamma");
  EXPECT_EQ(all[0].elements, 5);
  EXPECT_EQ(all[1].name, "beta");
  EXPECT_EQ(all[1].elements, 5);
  EXPECT_EQ(all[2].name, "moving_statistics");
  EXPECT_EQ(all[2].elements, 10);
  EXPECT_FALSE(all[2].trained);
  for (const ParameterTensor& tensor : all) EXPECT_FALSE(tensor.cast) << tensor.name;

  const auto shift_only = test::make_layer("{type: batch_norm, scale: false}")->parameters(inputs);
  ASSERT_EQ(shift_only.size(), 2u);
  EXPECT_EQ(shift_only[0].name, "beta");
  const auto none = test::make_layer("{type: batch_norm, scale: false, shift: false}")->parameters(inputs);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_FALSE(none[0].trained);
}

// dx = dy where y > 0: reads y and dy, or x as well where the framework keeps both (cuDNN).
TEST(Relu, KernelsAndKeptTensors) {
  LayerBench bench{"{type: relu}", {kImage}};
  EXPECT_EQ(bench.output, kImage);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("relu", KernelKind::elementwise, Phase::forward,
                                                            kElements, kBytes, kBytes)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("relu", KernelKind::elementwise, Phase::backward_data, kElements, kBytes * 2,
                                 kBytes)));
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_TRUE(bench.needs().output);

  bench.lowering.relu_keeps = ReluKeeps::input_and_output;
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("relu", KernelKind::elementwise, Phase::backward_data, kElements, kBytes * 3,
                                 kBytes)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_TRUE(bench.needs().output);
  bench.lowering.relu_in_place = true;  // input and output are one tensor
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_TRUE(bench.needs().output);
}

TEST(Relu, NothingWithoutInputGradient) {
  LayerBench bench{"{type: relu}", {kImage}};
  bench.lowering.relu_keeps = ReluKeeps::input_and_output;
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_FALSE(bench.needs().output);
}

// 3x3, stride 2, same: ceil(4/2) x ceil(6/2) = 2x3 outputs, 30 of them, 120 B; 9 comparisons each = 270. The
// maximum is looked for again: backward reads x, y and dy (480 + 2*120 = 720 B) and writes dx.
TEST(MaxPool, KernelsOfEachPhase) {
  const LayerBench bench{"{type: max_pool, kernel: 3, stride: 2, padding: same}", {kImage}};
  EXPECT_EQ(bench.output, image(5, 2, 3));
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("max_pool", KernelKind::pooling, Phase::forward,
                                                            270, kBytes, per_sample(120))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("max_pool", KernelKind::pooling, Phase::backward_data, 270, per_sample(720),
                                 kBytes)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_TRUE(bench.needs().output);
}

// A mean's gradient is dy spread over the window: reads dy only, keeps nothing.
TEST(AvgPool, KernelsOfEachPhase) {
  const LayerBench bench{"{type: avg_pool, kernel: 2, stride: 2, padding: valid}", {kImage}};
  EXPECT_EQ(bench.output, image(5, 2, 3));
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("avg_pool", KernelKind::pooling, Phase::forward,
                                                            30 * 4, kBytes, per_sample(120))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("avg_pool", KernelKind::pooling, Phase::backward_data, 30 * 4,
                                 per_sample(120), kBytes)));
  EXPECT_FALSE(bench.needs().inputs);
  EXPECT_FALSE(bench.needs().output);
}

// PyTorch's autograd saves the input for its sizes.
TEST(AvgPool, PyTorchKeepsTheInput) {
  for (const char* yaml :
       {"{type: avg_pool, kernel: 2, stride: 2, padding: valid}", "{type: global_avg_pool}"}) {
    LayerBench bench{yaml, {kImage}};
    bench.lowering.aten_kernels = true;
    EXPECT_TRUE(bench.needs().inputs) << yaml;
    EXPECT_FALSE(bench.needs().output) << yaml;
    bench.input_gradient = false;
    EXPECT_FALSE(bench.needs().inputs) << yaml;
  }
}

// 5 outputs, each the mean of 24 pixels: 120 operations, 20 B.
TEST(GlobalAvgPool, OnePixelAChannel) {
  const LayerBench bench{"{type: global_avg_pool}", {kImage}};
  EXPECT_EQ(bench.output, image(5, 1, 1));
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("avg_pool", KernelKind::pooling, Phase::forward,
                                                            120, kBytes, per_sample(20))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("avg_pool", KernelKind::pooling, Phase::backward_data, 120, per_sample(20),
                                 kBytes)));
}

TEST(Pooling, NothingWithoutInputGradient) {
  for (const char* yaml : {"{type: max_pool, kernel: 2, padding: 0}",
                           "{type: avg_pool, kernel: 2, padding: 0}", "{type: global_avg_pool}"}) {
    LayerBench bench{yaml, {kImage}};
    bench.input_gradient = false;
    EXPECT_THAT(bench.backward(), IsEmpty()) << yaml;
    EXPECT_FALSE(bench.needs().inputs || bench.needs().output) << yaml;
  }
}

// Three inputs: two additions an element, three reads, one write. The gradient of each input is the gradient
// of the sum: no kernel.
TEST(Add, OneKernelForwardNoneBackward) {
  const LayerBench bench{"{type: add}", {kImage, kImage, kImage}};
  EXPECT_EQ(bench.output, kImage);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("add", KernelKind::elementwise, Phase::forward,
                                                            2 * kElements, kBytes * 3, kBytes)));
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_TRUE(bench.layer->passes_gradient_through());
  EXPECT_FALSE(bench.needs().inputs || bench.needs().output);
}

TEST(Add, WantsTwoInputsOfOneShape) {
  const auto layer = test::make_layer("{type: add}");
  const std::vector<Shape> one{kImage};
  const std::vector<Shape> different{kImage, image(5, 4, 5)};
  EXPECT_THROW((void)layer->output_shape(one), ShapeMismatch);
  EXPECT_THROW((void)layer->output_shape(different), ShapeMismatch);
}

// 5 + 2 + 1 channels of 24 pixels = 192 elements copied: 768 B read, 768 B written, each way, no arithmetic;
// back, part by part (480, 192 and 96 B).
TEST(Concat, CopiesEachWay) {
  const LayerBench bench{"{type: concat}", {kImage, image(2, 4, 6), image(1, 4, 6)}};
  EXPECT_EQ(bench.output, image(8, 4, 6));
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("concat", KernelKind::elementwise, Phase::forward,
                                                            0, per_sample(768), per_sample(768))));
  const auto part = [](std::int64_t bytes) {
    return moving("concat", KernelKind::elementwise, Phase::backward_data, 0, per_sample(bytes),
                  per_sample(bytes));
  };
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(part(480), part(192), part(96)));
}

TEST(Concat, WantsShapesThatDifferInChannelsOnly) {
  const auto layer = test::make_layer("{type: concat}");
  const std::vector<Shape> one{kImage};
  const std::vector<Shape> different{kImage, image(5, 4, 5)};
  const std::vector<Shape> ranks{kImage, test::vector(120)};
  EXPECT_THROW((void)layer->output_shape(one), ShapeMismatch);
  EXPECT_THROW((void)layer->output_shape(different), ShapeMismatch);
  EXPECT_THROW((void)layer->output_shape(ranks), ShapeMismatch);
}

// Draws and scales (2 operations an element); writes the output and a mask of one byte an element, which the
// backward pass reads beside dy.
TEST(Dropout, MaskOfOneByteAnElement) {
  const LayerBench bench{"{type: dropout, keep: 0.8}", {kImage}};
  EXPECT_EQ(bench.output, kImage);
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("dropout", KernelKind::elementwise, Phase::forward, 240, kBytes,
                                 per_sample(480 + 120))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("dropout", KernelKind::elementwise, Phase::backward_data, 240,
                                 per_sample(600), kBytes)));
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(120));
}

TEST(Dropout, NothingWithoutInputGradient) {
  LayerBench bench{"{type: dropout, keep: 0.8}", {kImage}};
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

// Half precision: half the bytes, the same operations, except the mask's byte an element.
TEST(MemoryLayers, Fp16HalvesBytes) {
  LayerBench relu{"{type: relu}", {kImage}};
  relu.precision = test::kFp16;
  EXPECT_EQ(relu.forward()[0].read_bytes, per_sample(240));
  EXPECT_EQ(relu.forward()[0].flops, per_sample(kElements));
  LayerBench dropout{"{type: dropout, keep: 0.5}", {kImage}};
  dropout.precision = test::kFp16;
  EXPECT_EQ(dropout.forward()[0].written_bytes, per_sample(240 + 120));
}

}  // namespace
}  // namespace tbdsim
