// conv2d: one multiply-add for each output pixel and weight of its filter, in each of the three phases.
#include <algorithm>

#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"
#include "tests/hwspecs/message_of.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::per_sample;
using test::Work;
using test::works_of;
using testing::ElementsAre;
using testing::IsEmpty;

// 3 channels of 8x10, 4 filters of 3x3, padding 1: 4x8x10 out. Weights 3*3*3*4 = 108, biases 4.
// Multiply-adds of one image: 4*8*10 outputs x 27 weights = 8640, flops twice that. In fp32 the input is
// 3*80*4 = 960 B, the output 4*80*4 = 1280 B, the weights 108*4 = 432 B.
constexpr std::int64_t kFlops = 17280;
constexpr std::int64_t kMacs = 8640;
constexpr Size kX{0, 960}, kY{0, 1280}, kW{432, 0};

LayerBench padded() {
  return {"{type: conv2d, filters: 4, kernel: 3, padding: 1, bias: true}", {image(3, 8, 10)}};
}

Work conv(Phase phase, Size read, Size written, Size scratch = {}) {
  return {"conv", KernelKind::convolution, phase, per_sample(kFlops), per_sample(kMacs), read, written,
          scratch};
}

// Only moves data, read once and written once.
Work transpose(Phase phase, Size bytes) {
  return {"nhwc_nchw", KernelKind::transpose, phase, {}, {}, bytes, bytes, {}};
}

// One addition for each of the 320 outputs of an image.
const Work kBiasAdd{"bias_add", KernelKind::elementwise, Phase::forward, per_sample(320), {}, kY, kY, {}};
// Reads dy, writes 4 sums of 4 B.
const Work kBiasGradient{
    "bias_gradient", KernelKind::reduction, Phase::backward_weights, per_sample(320), {}, kY, {16, 0}, {}};

TEST(Conv2d, ShapeAndParameters) {
  const LayerBench bench = padded();
  EXPECT_EQ(bench.output, image(4, 8, 10));
  const auto parameters = bench.layer->parameters(bench.inputs);
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name, "weight");
  EXPECT_EQ(parameters[0].elements, 108);
  EXPECT_TRUE(parameters[0].trained && parameters[0].cast);
  EXPECT_EQ(parameters[1].name, "bias");
  EXPECT_EQ(parameters[1].elements, 4);
}

TEST(Conv2d, HasNoBiasUnlessAskedFor) {
  const LayerBench bench{"{type: conv2d, filters: 4, kernel: 3, padding: 1}", {image(3, 8, 10)}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs).size(), 1u);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(conv(Phase::forward, Size{432, 960}, kY)));
}

TEST(Conv2d, KernelsOfEachPhase) {
  const LayerBench bench = padded();
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(conv(Phase::forward, Size{432, 960}, kY), kBiasAdd));  // reads x and w
  EXPECT_THAT(
      works_of(bench.backward()),
      ElementsAre(kBiasGradient, conv(Phase::backward_weights, per_sample(960 + 1280), kW),  // reads x and dy
                  conv(Phase::backward_data, Size{432, 1280}, kX)));                         // reads dy and w
}

TEST(Conv2d, FrozenLayerHasNoWeightGradients) {
  LayerBench bench = padded();
  bench.weight_gradient = false;
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(conv(Phase::backward_data, Size{432, 1280}, kX)));
  EXPECT_FALSE(bench.needs().inputs);  // x is only read for the weights' gradient
}

TEST(Conv2d, FirstLayerHasNoInputGradient) {
  LayerBench bench = padded();
  bench.input_gradient = false;
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(kBiasGradient, conv(Phase::backward_weights, per_sample(2240), kW)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_FALSE(bench.needs().output);
  bench.weight_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

// cuDNN convolves NCHW: x and y are copied around every convolution, and the copies are scratch memory (2240
// B an image beside Winograd's).
TEST(Conv2d, NhwcTransposesAroundEachConvolution) {
  LayerBench bench = padded();
  bench.lowering.layout = Layout::nhwc;
  constexpr Size kScratch{0, 960 + 1280};
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(transpose(Phase::forward, kX), conv(Phase::forward, Size{432, 960}, kY, kScratch),
                          transpose(Phase::forward, kY), kBiasAdd));
  EXPECT_THAT(
      works_of(bench.backward()),
      ElementsAre(
          kBiasGradient, transpose(Phase::backward_weights, kX), transpose(Phase::backward_weights, kY),
          conv(Phase::backward_weights, per_sample(2240), kW, kScratch), transpose(Phase::backward_data, kY),
          conv(Phase::backward_data, Size{432, 1280}, kX, kScratch), transpose(Phase::backward_data, kX)));
}

// Half the bytes, the same work, tensor-core arithmetic where the precision says so.
TEST(Conv2d, Fp16HalvesBytesAndKeepsWork) {
  LayerBench bench = padded();
  bench.precision = test::kFp16;
  const auto kernels = bench.forward();
  EXPECT_EQ(kernels[0].math, MathType::fp16);
  EXPECT_EQ(kernels[0].macs, per_sample(kMacs));
  EXPECT_EQ(kernels[0].read_bytes, (Size{216, 480}));
  EXPECT_EQ(kernels[0].written_bytes, per_sample(640));
  EXPECT_EQ(kernels[1].math, MathType::fp32);  // the bias is added in fp32
}

// Kernels for tensor cores read NHWC and write NCHW: what they read is copied, what they write is not.
TEST(Conv2d, TensorCoresReadTransposedImages) {
  LayerBench bench = padded();
  bench.precision = test::kFp16;
  bench.lowering.tensor_core_layout = Layout::nhwc;
  const auto transposes = [](const std::vector<Kernel>& kernels) {
    return std::count_if(kernels.begin(), kernels.end(),
                         [](const Kernel& kernel) { return kernel.kind == KernelKind::transpose; });
  };
  EXPECT_EQ(transposes(bench.forward()), 1);
  EXPECT_EQ(transposes(bench.backward()), 2 + 1);
  bench.lowering.layout = Layout::nhwc;
  EXPECT_EQ(transposes(bench.forward()), 0);
  EXPECT_EQ(transposes(bench.backward()), 0);
}

// 1x7 over 5x17, stride 1x2, padding 0x3: rows (5-1)/1+1 = 5, columns floor((17+6-7)/2)+1 = 9.
// Multiply-adds: 2 filters * 5*9 pixels * 4*7 weights = 2520.
TEST(Conv2d, AsymmetricWindow) {
  const LayerBench bench{"{type: conv2d, filters: 2, kernel: [1, 7], stride: [1, 2], padding: [0, 3]}",
                         {image(4, 5, 17)}};
  EXPECT_EQ(bench.output, image(2, 5, 9));
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 4 * 7 * 2);
  const Kernel kernel = bench.forward().front();
  EXPECT_EQ(kernel.macs, per_sample(2520));
  const auto& shape = std::get<ConvShape>(kernel.shape);
  EXPECT_EQ(shape, (ConvShape{.images = per_sample(1),
                              .channels = 4,
                              .height = 5,
                              .width = 17,
                              .filters = 2,
                              .out_height = 5,
                              .out_width = 9,
                              .kernel_height = 1,
                              .kernel_width = 7,
                              .stride_height = 1,
                              .stride_width = 2,
                              .pad_height = 0,
                              .pad_width = 3}));
}

TEST(Conv2d, StridedConvolution) {
  const LayerBench bench{"{type: conv2d, filters: 4, kernel: 3, stride: 2, padding: 1}", {image(3, 8, 10)}};
  EXPECT_EQ(bench.output, image(4, 4, 5));
  EXPECT_EQ(bench.forward()[0].macs, per_sample(4 * 4 * 5 * 27));
}

// 8 channels of 5x6 to 16: Y = W X with the 30 pixels of an image as columns; 16*8*30 = 3840 multiply-adds,
// x = 8*30*4 = 960 B, y = 1920 B, w = 8*16*4 = 512 B. No transposes, no scratch memory, even in NHWC.
TEST(Conv2d, OneByOneAsMatrixProduct) {
  LayerBench bench{"{type: conv2d, filters: 16, kernel: 1, padding: same}", {image(8, 5, 6)}};
  bench.lowering = {.layout = Layout::nhwc, .conv_1x1 = Conv1x1::gemm};
  const auto product = [](Phase phase, Size read, Size written) {
    return Work{"conv_1x1", KernelKind::gemm, phase, per_sample(7680), per_sample(3840), read, written, {}};
  };
  const auto forward = bench.forward();
  const auto backward = bench.backward();
  EXPECT_THAT(works_of(forward), ElementsAre(product(Phase::forward, Size{512, 960}, per_sample(1920))));
  EXPECT_THAT(works_of(backward),
              ElementsAre(product(Phase::backward_weights, per_sample(2880), Size{512, 0}),
                          product(Phase::backward_data, Size{512, 1920}, per_sample(960))));
  const Size in{8, 0}, out{16, 0}, pixels{0, 30};
  EXPECT_EQ(std::get<GemmShape>(forward[0].shape), (GemmShape{.m = out, .n = pixels, .k = in}));
  EXPECT_EQ(std::get<GemmShape>(backward[0].shape),
            (GemmShape{.m = out, .n = in, .k = pixels, .transpose_b = true}));
  EXPECT_EQ(std::get<GemmShape>(backward[1].shape),
            (GemmShape{.m = in, .n = pixels, .k = out, .transpose_a = true}));
}

// cuDNN 9: 8 channels of 5x6 pixels to 16, in half precision x = 480 B, y = 960 B, w = 256 B; each image is
// multiplied as it is. 30 pixels are a multiple of 4 bytes: the gradient of the weights copies none either.
TEST(Conv2d, OneByOneOfEachImage) {
  LayerBench bench{"{type: conv2d, filters: 16, kernel: 1, padding: same}", {image(8, 5, 6)}};
  bench.lowering = {.tensor_core_layout = Layout::nhwc, .conv_1x1 = Conv1x1::image_products};
  bench.precision = test::kFp16;
  const auto forward = bench.forward(), backward = bench.backward();
  ASSERT_EQ(forward.size(), 1u);
  ASSERT_EQ(backward.size(), 2u);
  const Size pixels{30, 0}, in{8, 0}, out{16, 0};
  EXPECT_EQ(std::get<GemmShape>(forward[0].shape),
            (GemmShape{.m = pixels, .n = out, .k = in, .batch = {0, 1}}));
  EXPECT_EQ(backward[0].kind, KernelKind::convolution);
  EXPECT_EQ(std::get<GemmShape>(backward[1].shape),
            (GemmShape{.m = pixels, .n = in, .k = out, .batch = {0, 1}, .transpose_b = true}));
  EXPECT_EQ(forward[0].read_bytes, (Size{256, 480}));
  EXPECT_EQ(forward[0].scratch_bytes, Size{});
}

// The gradient of the weights copies both images from fewer channels on than the other passes: 60
// multiply-adds for each number copied of 3x5 pixels, 123 of 14x14 are enough, 5 are not.
TEST(Conv2d, OneByOneOfOddImagesCopiesThemForTheWeights) {
  const auto kinds_of = [](const std::string& filters, const Shape& images) {
    LayerBench bench{"{type: conv2d, filters: " + filters + ", kernel: 1, padding: same}", {images}};
    bench.lowering = {.tensor_core_layout = Layout::nhwc, .conv_1x1 = Conv1x1::image_products};
    bench.precision = test::kFp16;
    std::vector<KernelKind> kinds;
    for (const Kernel& kernel : bench.backward()) kinds.push_back(kernel.kind);
    return kinds;
  };
  const auto copied =
      ElementsAre(KernelKind::transpose, KernelKind::transpose, KernelKind::convolution, KernelKind::gemm);
  EXPECT_THAT(kinds_of("120", image(120, 3, 5)), copied);
  EXPECT_THAT(kinds_of("256", image(240, 14, 14)), copied);
  EXPECT_THAT(kinds_of("16", image(8, 3, 5)), ElementsAre(KernelKind::convolution, KernelKind::gemm));
}

// 7x7 pixels: 512 channels to 512 filters are 256 multiply-adds for each number copied, and images are copied
// around every pass; 64 to 64 are 32, and they are multiplied as they are.
TEST(Conv2d, OneByOneOfOddImagesCopiesThemWhereChannelsAreMany) {
  const auto kinds_of = [](const std::string& layer, std::int64_t channels) {
    LayerBench bench{layer, {image(channels, 7, 7)}};
    bench.lowering = {.tensor_core_layout = Layout::nhwc, .conv_1x1 = Conv1x1::image_products};
    bench.precision = test::kFp16;
    std::vector<KernelKind> kinds;
    for (const Kernel& kernel : bench.forward()) kinds.push_back(kernel.kind);
    return kinds;
  };
  EXPECT_THAT(kinds_of("{type: conv2d, filters: 64, kernel: 1, padding: same}", 64),
              ElementsAre(KernelKind::gemm));
  EXPECT_THAT(kinds_of("{type: conv2d, filters: 512, kernel: 1, padding: same}", 512),
              ElementsAre(KernelKind::transpose, KernelKind::convolution, KernelKind::transpose));
}

// Other filters: what is read is copied before, filters too, the result after, but in TF32 before, too, as it
// may run in fp32. The gradient of the weights is copied back.
TEST(Conv2d, ResultsAreCopiedBackWhereOneByOnesAreNot) {
  LayerBench bench{"{type: conv2d, filters: 4, kernel: 3, padding: 1}", {image(3, 8, 10)}};
  bench.lowering = {.tensor_core_layout = Layout::nhwc, .conv_1x1 = Conv1x1::image_products};
  bench.precision = test::kFp16;
  const Size x{0, 480}, y{0, 640};
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(transpose(Phase::forward, x), transpose(Phase::forward, {216, 0}),
                          Work{"conv", KernelKind::convolution, Phase::forward, per_sample(kFlops),
                               per_sample(kMacs), Size{216, 480}, y, x + y},
                          transpose(Phase::forward, y)));
  EXPECT_EQ(works_of(bench.backward())[3], transpose(Phase::backward_weights, {216, 0}));
  bench.precision = *std::ranges::find(kPrecisions, MathType::tf32, &Precision::convolution_math);
  const auto tf32 = bench.forward();
  ASSERT_EQ(tf32.size(), 4u);
  EXPECT_TRUE(tf32[0].tf32_only && tf32[1].tf32_only && tf32[2].tf32_only);
  EXPECT_EQ(tf32[3].kind, KernelKind::convolution);
}

// NCHW images are convolved by the library.
TEST(Conv2d, OneByOneOfNchwStaysAConvolution) {
  LayerBench bench{"{type: conv2d, filters: 16, kernel: 1, padding: same}", {image(8, 5, 6)}};
  bench.lowering.conv_1x1 = Conv1x1::gemm;
  EXPECT_EQ(bench.forward()[0].kind, KernelKind::convolution);
}

// Only 1x1 filters of stride 1 without padding are plain matrix products.
TEST(Conv2d, OtherOneByOnesStayConvolutions) {
  for (const char* yaml : {"{type: conv2d, filters: 16, kernel: 1, stride: 2, padding: 0}",
                           "{type: conv2d, filters: 16, kernel: 1, padding: 1}",
                           "{type: conv2d, filters: 16, kernel: [1, 3], padding: same}"}) {
    LayerBench bench{yaml, {image(8, 5, 6)}};
    bench.lowering = {.layout = Layout::nhwc, .conv_1x1 = Conv1x1::gemm};
    EXPECT_EQ(bench.forward()[1].kind, KernelKind::convolution) << yaml;  // after a transpose
  }
}

TEST(Conv2d, WantsOneImage) {
  const auto layer = test::make_layer("{type: conv2d, filters: 1, kernel: 1, padding: 0}");
  const std::vector<Shape> flat{test::vector(10)};
  const std::vector<Shape> two{image(1, 2, 2), image(1, 2, 2)};
  EXPECT_THROW((void)layer->output_shape(flat), ShapeMismatch);
  EXPECT_THROW((void)layer->output_shape(two), ShapeMismatch);
}

// With the ReLU in its kernel the forward pass is one kernel, and the backward pass masks and sums the
// gradient in one: it reads the output and its gradient and writes the gradient.
TEST(Conv2d, AnEpilogueIsPartOfItsKernel) {
  const LayerBench bench{"{type: conv2d, filters: 4, kernel: 3, padding: 1, bias: true, epilogue: relu}",
                         {image(3, 8, 10)}};
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(conv(Phase::forward, kX + kW, kY)));
  const std::vector<Work> backward = works_of(bench.backward());
  ASSERT_EQ(backward.size(), 3u);
  EXPECT_EQ(backward[0].op, "relu");
  EXPECT_EQ(backward[0].read, kY * 2);
  EXPECT_EQ(backward[0].written, kY);
  EXPECT_TRUE(bench.layer->backward_needs(bench.site(), {bench.lowering, bench.precision}).output);
  const LayerBench bias{"{type: conv2d, filters: 4, kernel: 3, padding: 1, bias: true, epilogue: bias}",
                        {image(3, 8, 10)}};
  EXPECT_EQ(bias.forward().size(), 1u);
  EXPECT_EQ(works_of(bias.backward())[0], kBiasGradient);
  EXPECT_THAT(test::message_of<SpecError>([] {
                (void)test::make_layer("{type: conv2d, filters: 4, kernel: 3, padding: 1, epilogue: bias}");
              }),
              testing::HasSubstr("epilogue: is bias in a convolution without one"));
}

}  // namespace
}  // namespace tbdsim
