// Layers of networks with grouped and depthwise convolutions, squeeze-and-excitation, group norm and
// stochastic depth.
#include <gmock/gmock.h>

#include "graphs/depthwise.h"
#include "graphs/group_moments.h"
#include "tests/graphs/work_fixture.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::moving;
using test::per_sample;
using test::Work;
using test::works_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr KernelKind kEach = KernelKind::elementwise;
constexpr Phase kForward = Phase::forward, kData = Phase::backward_data, kWeights = Phase::backward_weights;

// 6 channels of 4x5: 120 numbers, 480 B in fp32.
const Shape kImage = image(6, 4, 5);
constexpr Size kX{0, 480};

const ConvShape& conv_of(const Kernel& kernel) { return std::get<ConvShape>(kernel.shape); }

// 4 filters in 2 groups, each of 3 of the 6 channels: 4 * 3 * 9 = 108 weights, 432 B; 4 * 20 outputs of 27
// multiply-adds = 2160, for each image. y: 320 B.
TEST(Conv2d, Groups) {
  const LayerBench bench{"{type: conv2d, filters: 4, kernel: 3, padding: 1, groups: 2}", {kImage}};
  EXPECT_EQ(bench.output, image(4, 4, 5));
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 108);
  const auto conv = [](Phase phase, Size read, Size written) {
    return Work{"conv", KernelKind::convolution, phase, per_sample(4320), per_sample(2160), read, written,
                {}};
  };
  const auto forward = bench.forward();
  EXPECT_THAT(works_of(forward), ElementsAre(conv(kForward, Size{432, 480}, per_sample(320))));
  EXPECT_EQ(conv_of(forward[0]).groups, 2);
  EXPECT_EQ(conv_of(forward[0]).channels, 6);
  EXPECT_EQ(shape_text(forward[0], 8), "8x6x4x5 4x3x3 g2");
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(conv(kWeights, per_sample(800), Size{432, 0}), conv(kData, Size{432, 320}, kX)));
}

// Depthwise with two filters a channel: 12 * 9 weights; each output is a sum of 9.
TEST(Conv2d, Depthwise) {
  LayerBench bench{"{type: conv2d, filters: 12, kernel: 3, padding: 1, groups: 6}", {kImage}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 108);
  EXPECT_EQ(bench.forward()[0].macs, per_sample(12 * 20 * 9));
  EXPECT_TRUE(is_depthwise(conv_of(bench.forward()[0])));
  EXPECT_TRUE(conv_of(bench.forward()[0]).framework_kernel);
  EXPECT_EQ(bench.forward()[0].op, "conv_depthwise");
  EXPECT_FALSE(conv_of(bench.forward()[0]).channels_last);
  bench.lowering.depthwise = DepthwiseKernels::library;
  bench.lowering.layout = Layout::nhwc;
  ASSERT_EQ(bench.forward().size(), 1u);  // no copies into another layout
  EXPECT_FALSE(conv_of(bench.forward()[0]).framework_kernel);
  EXPECT_TRUE(conv_of(bench.forward()[0]).channels_last);
}

// A window of 3 at distance 2 spans 5 pixels: 4 - 5 + 2 * 2 + 1 = 4 rows.
TEST(Conv2d, Dilation) {
  const LayerBench bench{"{type: conv2d, filters: 2, kernel: 3, padding: 2, dilation: 2}", {kImage}};
  EXPECT_EQ(bench.output, image(2, 4, 5));
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 6 * 9 * 2);
  EXPECT_EQ(conv_of(bench.forward()[0]).dilation_height, 2);
  EXPECT_EQ(shape_text(bench.forward()[0], 1), "1x6x4x5 2x3x3 d2");  // padding centres it
  const LayerBench uneven{"{type: conv2d, filters: 2, kernel: 3, padding: [0, 3], dilation: [1, 3]}",
                          {kImage}};
  EXPECT_EQ(uneven.output, image(2, 2, 5));
  const LayerBench same{"{type: conv2d, filters: 2, kernel: 3, padding: same, dilation: 2}", {kImage}};
  EXPECT_EQ(conv_of(same.forward()[0]).pad_height, 2);
}

TEST(Conv2d, GroupsMustDivide) {
  EXPECT_THROW((void)test::make_layer("{type: conv2d, filters: 4, kernel: 3, padding: 1, groups: 3}"),
               SpecError);
  const auto layer = test::make_layer("{type: conv2d, filters: 4, kernel: 3, padding: 1, groups: 4}");
  const std::vector<Shape> six{kImage};
  EXPECT_THROW((void)layer->output_shape(six), ShapeMismatch);
}

// PyTorch's rule: in NCHW and fp16 cuDNN takes 3x3 filters of stride 1 from 32 channels and 7 columns on,
// with stride 2 from 512 channels on, or 256 and 28 columns; all of NHWC, nothing of fp32.
TEST(Depthwise, WhoseKernels) {
  const auto own = [](const ConvShape& s, MathType math, Layout layout = Layout::nchw) {
    return has_framework_kernel(s, math, layout, DepthwiseKernels::half_by_size);
  };
  ConvShape s{.images = per_sample(1),
              .channels = 32,
              .height = 14,
              .width = 14,
              .filters = 32,
              .out_height = 14,
              .out_width = 14,
              .kernel_height = 3,
              .kernel_width = 3,
              .pad_height = 1,
              .pad_width = 1,
              .groups = 32};
  EXPECT_FALSE(own(s, MathType::fp16));
  EXPECT_TRUE(own(s, MathType::fp32));
  EXPECT_TRUE(own(s, MathType::bf16));
  EXPECT_FALSE(own(s, MathType::fp32, Layout::nhwc));
  s.width = 6;
  EXPECT_TRUE(own(s, MathType::fp16));
  s.width = 14;
  s.kernel_height = s.kernel_width = 7;
  EXPECT_TRUE(own(s, MathType::fp16));
  s.kernel_height = s.kernel_width = 5;
  EXPECT_FALSE(own(s, MathType::fp16));
  s.stride_height = s.stride_width = 2;
  EXPECT_TRUE(own(s, MathType::fp16));
  s.channels = s.filters = s.groups = 512;
  EXPECT_FALSE(own(s, MathType::fp16));
  s.channels = s.filters = s.groups = 256;
  EXPECT_TRUE(own(s, MathType::fp16));
  s.height = s.width = 28;
  EXPECT_FALSE(own(s, MathType::fp16));
  s.dilation_height = s.dilation_width = 2;
  EXPECT_TRUE(own(s, MathType::fp16));
  EXPECT_FALSE(has_framework_kernel(s, MathType::fp32, Layout::nchw, DepthwiseKernels::library));
  EXPECT_TRUE(has_framework_kernel(s, MathType::fp16, Layout::nhwc, DepthwiseKernels::own));
  s.groups = 32;
  EXPECT_FALSE(has_framework_kernel(s, MathType::fp32, Layout::nchw, DepthwiseKernels::own));
}

// 3 channels of 4x5 to 2 of 7x9: (4 - 1) * 2 + 3 - 2 = 7 rows; 60 numbers times 2 * 9 weights.
TEST(ConvTranspose2d, OverlappingSquares) {
  const LayerBench bench{
      "{type: conv_transpose2d, filters: 2, kernel: 3, stride: 2, padding: 1, bias: false}",
      {image(3, 4, 5)}};
  EXPECT_EQ(bench.output, image(2, 7, 9));
  EXPECT_EQ(bench.layer->parameters(bench.inputs).size(), 1u);
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 54);
  const auto forward = bench.forward();
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0].macs, per_sample(60 * 18));
  EXPECT_EQ(forward[0].read_bytes, (Size{54 * 4, 240}));
  EXPECT_EQ(forward[0].written_bytes, per_sample(2 * 63 * 4));
  // The convolution from 2 channels of 7x9 to 3 of 4x5.
  EXPECT_EQ(conv_of(forward[0]), (ConvShape{.images = per_sample(1),
                                            .channels = 2,
                                            .height = 7,
                                            .width = 9,
                                            .filters = 3,
                                            .out_height = 4,
                                            .out_width = 5,
                                            .kernel_height = 3,
                                            .kernel_width = 3,
                                            .stride_height = 2,
                                            .stride_width = 2,
                                            .pad_height = 1,
                                            .pad_width = 1,
                                            .transposed = true}));
  const LayerBench even{
      "{type: conv_transpose2d, filters: 2, kernel: 3, stride: 2, padding: 1, output_padding: 1}",
      {image(3, 4, 5)}};
  EXPECT_EQ(even.output, image(2, 8, 10));
  const auto cut = test::make_layer("{type: conv_transpose2d, filters: 2, kernel: 3, stride: 1, padding: 2}");
  const std::vector<Shape> small{image(3, 2, 5)};
  EXPECT_THROW((void)cut->output_shape(small), ShapeMismatch);
}

// Forward one tensor in, one out; backward the input and the gradient are read; the input is kept.
TEST(InputActivations, KeepTheirInput) {
  const struct {
    const char* yaml;
    const char* op;
    std::int64_t forward, backward;  // operations on each number
  } cases[] = {{"{type: relu6}", "relu6", 2, 2},
               {"{type: silu}", "silu", 2, 6},
               {"{type: swish}", "silu", 2, 6},
               {"{type: hardswish}", "hardswish", 5, 6},
               {"{type: hardsigmoid}", "hardsigmoid", 4, 3}};
  for (const auto& c : cases) {
    LayerBench bench{c.yaml, {kImage}};
    EXPECT_EQ(bench.output, kImage);
    EXPECT_THAT(works_of(bench.forward()),
                ElementsAre(moving(c.op, kEach, kForward, 120 * c.forward, kX, kX)));
    EXPECT_THAT(works_of(bench.backward()),
                ElementsAre(moving(c.op, kEach, kData, 120 * c.backward, kX * 2, kX)));
    EXPECT_TRUE(bench.needs().inputs);
    EXPECT_FALSE(bench.needs().output);
    bench.input_gradient = false;
    EXPECT_THAT(bench.backward(), IsEmpty());
    EXPECT_FALSE(bench.needs().inputs);
  }
}

// A framework that works in place copies the input first, because the gradient needs it.
TEST(InputActivations, InPlaceCopyTheirInput) {
  LayerBench bench{"{type: silu, in_place: true}", {kImage}};
  EXPECT_EQ(bench.forward().size(), 1u);
  bench.lowering.relu_in_place = true;
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("copy", kEach, kForward, 0, kX, kX),
                                                     moving("silu", kEach, kForward, 240, kX, kX)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_FALSE(bench.needs().output);
}

// x * s(x), and dy * (s * (1 + x * (1 - s))) with s computed again: an operator each, which read one number
// of each tensor or two.
TEST(InputActivations, CompositeSiluByOperators) {
  LayerBench bench{"{type: swish, composite: true}", {kImage}};
  const auto reads = [](const std::vector<Kernel>& kernels) {
    std::vector<std::pair<std::string_view, Size>> all;
    for (const Kernel& kernel : kernels) {
      EXPECT_EQ(kernel.written_bytes, kX);
      all.emplace_back(kernel.op, kernel.read_bytes);
      for (std::int64_t again = 1; again < kernel.repeat; ++again) all.push_back(all.back());
    }
    return all;
  };
  EXPECT_THAT(reads(bench.forward()), ElementsAre(Pair("sigmoid", kX), Pair("mul", kX * 2)));
  EXPECT_THAT(reads(bench.backward()),
              ElementsAre(Pair("sigmoid", kX), Pair("sub", kX), Pair("mul", kX * 2), Pair("add", kX),
                          Pair("mul", kX * 2), Pair("mul", kX * 2)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_FALSE(bench.needs().output);
}

// One factor for each of 6 channels, 24 B.
TEST(Multiply, OneFactorForEachChannel) {
  const LayerBench bench{"{type: multiply}", {kImage, image(6, 1, 1)}};
  EXPECT_EQ(bench.output, kImage);
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("mul", kEach, kForward, 120, per_sample(504), kX)));
  const Work by_x{"mul", kEach, kData, per_sample(120), {}, kX * 2, kX, kX};
  const Work sum{"sum", KernelKind::reduction, kData, per_sample(120), {}, kX, per_sample(24), kX};
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("mul", kEach, kData, 120, per_sample(504), kX), by_x, sum));
  EXPECT_TRUE(bench.needs().inputs);
}

TEST(Multiply, OfOneShapeHasNoSum) {
  const LayerBench bench{"{type: multiply}", {kImage, kImage}};
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(moving("mul", kEach, kData, 120, kX * 2, kX),
                                                      moving("mul", kEach, kData, 120, kX * 2, kX)));
  const auto layer = test::make_layer("{type: multiply}");
  const std::vector<Shape> unlike{kImage, image(5, 1, 1)}, ranks{kImage, test::vector(6)};
  EXPECT_THROW((void)layer->output_shape(unlike), ShapeMismatch);
  EXPECT_THROW((void)layer->output_shape(ranks), ShapeMismatch);
}

// Factors of 6 channels or 5 columns, 24 and 20 B in fp32.
TEST(LayerScale, ForEachChannelOrFeature) {
  const LayerBench bench{"{type: layer_scale, axes: image}", {kImage}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 6);
  EXPECT_THAT(works_of(bench.forward()), ElementsAre(moving("mul", kEach, kForward, 120, Size{24, 480}, kX)));
  const Work by_x{"mul", kEach, kWeights, per_sample(120), {}, kX * 2, kX, kX};
  const Work sum{"sum", KernelKind::reduction, kWeights, per_sample(120), {}, kX, Size{24, 0}, kX};
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(by_x, sum, moving("mul", kEach, kData, 120, Size{24, 480}, kX)));
  EXPECT_TRUE(bench.needs().inputs);
  const LayerBench features{"{type: layer_scale}", {kImage}};
  EXPECT_EQ(features.layer->parameters(features.inputs)[0].elements, 5);
}

// 2 groups: 4 statistics of 4 B; 6 channels: 12 numbers, 48 B. Moments, factors of each channel, the norm.
TEST(GroupNorm, KernelsOfEachPhase) {
  const LayerBench bench{"{type: group_norm, groups: 2}", {kImage}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs).size(), 2u);
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("group_moments", KernelKind::reduction, kForward, 360, kX, per_sample(16)),
                          moving("group_factors", kEach, kForward, 12, per_sample(16), per_sample(48)),
                          moving("group_norm", kEach, kForward, 240, per_sample(528), kX)));
  EXPECT_TRUE(bench.forward().front().thread_per_row);
  EXPECT_EQ(std::get<MatrixShape>(bench.forward().front().shape), (MatrixShape{fixed_size(1), 512}));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("group_sums", KernelKind::reduction, kData, 360, kX * 2, per_sample(48)),
                          moving("group_factors", kEach, kData, 12, per_sample(48), per_sample(48)),
                          moving("group_norm", kEach, kData, 480, per_sample(1008), kX),
                          moving("group_weights", kEach, kWeights, 12, per_sample(48), Size{48, 0})));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(16));
  // PyTorch's kernels of the results have factors of channels beside the image, and take numbers one at a
  // time.
  EXPECT_EQ(bench.forward()[2].access, Access::vectors);
  LayerBench pytorch{"{type: group_norm, groups: 2}", {kImage}};
  pytorch.lowering.aten_kernels = true;
  EXPECT_EQ(pytorch.forward()[2].access, Access::elements);
  EXPECT_EQ(pytorch.backward()[2].access, Access::elements);
  const auto layer = test::make_layer("{type: group_norm, groups: 4}");
  const std::vector<Shape> six{kImage};
  EXPECT_THROW((void)layer->output_shape(six), ShapeMismatch);
}

// A group of 8 channels of 128 x 128 pixels: 131,072 numbers, 256 for each of 512 threads; one more makes
// 257.
TEST(GroupNorm, ThreadsTakeNumbersOneAfterAnother) {
  Kernel moments;
  as_moments_of_groups(moments, 8 * 128 * 128);
  EXPECT_EQ(std::get<MatrixShape>(moments.shape).rows, fixed_size(256));
  as_moments_of_groups(moments, 8 * 128 * 128 + 1);
  EXPECT_EQ(std::get<MatrixShape>(moments.shape).rows, fixed_size(257));
}

// As a batch norm: x is read for the statistics and again for y; backward x and dy twice.
TEST(InstanceNorm, AsABatchNormOfEachChannel) {
  const LayerBench bench{"{type: instance_norm}", {kImage}};
  EXPECT_THAT(bench.layer->parameters(bench.inputs), IsEmpty());
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("instance_norm", KernelKind::batch_norm, kForward, 600, kX * 2, kX)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("instance_norm", KernelKind::batch_norm, kData, 840, kX * 4, kX)));
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(6 * 8));
}

// One random number of 4 B for each sample, divided by the share kept; x times it.
TEST(DropPath, OneNumberForEachSample) {
  LayerBench bench{"{type: drop_path, keep: 0.9}", {kImage}};
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("random", kEach, kForward, 1, {}, per_sample(4)),
                          moving("div", kEach, kForward, 1, per_sample(4), per_sample(4)),
                          moving("mul", kEach, kForward, 120, per_sample(484), kX)));
  EXPECT_THAT(works_of(bench.backward()), ElementsAre(moving("mul", kEach, kData, 120, per_sample(484), kX)));
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(4));
  EXPECT_FALSE(bench.needs().inputs);
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

// 480 numbers, 1920 B, of 4 products and 3 sums each; backward a gradient of zeros, to which 4 products are
// added for each number of dy.
TEST(Upsample, Bilinear) {
  const LayerBench bench{"{type: upsample, factor: 2, mode: bilinear}", {kImage}};
  EXPECT_EQ(bench.output, image(6, 8, 10));
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("upsample", kEach, kForward, 7 * 480, kX, per_sample(1920))));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("fill", kEach, kData, 0, {}, kX),
                          moving("upsample", kEach, kData, 8 * 480, per_sample(2400), kX)));
}

}  // namespace
}  // namespace tbdsim
