// Layers that only convolutional networks of before 2015 and torchvision's have.
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

Work moving(std::string_view op, KernelKind kind, Phase phase, std::int64_t flops, std::int64_t read,
            std::int64_t written) {
  return {op, kind, phase, per_sample(flops), {}, per_sample(read), per_sample(written), {}};
}

// Each output of a window of 3: a square, 2 sums, scale and shift, power, division = 7 operations, 840 in
// all; x is read and y written once. Backward: the first 5 again, dy y / s (2), 2 sums, and 5 to put dx
// together = 14, 1680 in all; reads x, y and dy.
TEST(LocalResponseNorm, KernelsOfEachPhase) {
  const LayerBench bench{"{type: lrn, window: 3}", {kImage}};
  EXPECT_EQ(bench.output, kImage);
  EXPECT_THAT(bench.layer->parameters(bench.inputs), IsEmpty());
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("lrn", KernelKind::elementwise, Phase::forward, 840, 480, 480)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("lrn", KernelKind::elementwise, Phase::backward_data, 1680, 1440, 480)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_TRUE(bench.needs().output);
}

// A power has 62 operations. s: 3 squares, 2 sums, scale, shift: 7 on each of 120 elements; y: a power and a
// product, reads x and s. Backward: dy s^-beta likewise; then 3 x (power, 3 operations) and 3 more, reads x,
// dy, s and the first part. s is kept beside x.
TEST(LocalResponseNorm, Composite) {
  LayerBench bench{"{type: lrn, window: 3}", {kImage}};
  bench.lowering.lrn = Composition::composite;
  const KernelKind each = KernelKind::elementwise;
  EXPECT_THAT(works_of(bench.forward()),
              ElementsAre(moving("lrn_norm", each, Phase::forward, 7 * 120, 480, 480),
                          moving("lrn_scale", each, Phase::forward, 63 * 120, 960, 480)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("lrn_scale", each, Phase::backward_data, 63 * 120, 960, 480),
                          moving("lrn_window", each, Phase::backward_data, 198 * 120, 1920, 480)));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_FALSE(bench.needs().output);
  EXPECT_EQ(bench.needs().extra_bytes, per_sample(480));
}

TEST(LocalResponseNorm, NothingWithoutInputGradient) {
  LayerBench bench{"{type: lrn, window: 5}", {kImage}};
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
  EXPECT_FALSE(bench.needs().inputs || bench.needs().output);
}

TEST(LocalResponseNorm, WantsAnImage) {
  const auto layer = test::make_layer("{type: lrn, window: 5}");
  const std::vector<Shape> vectors{test::vector(120)};
  EXPECT_THROW((void)layer->output_shape(vectors), ShapeMismatch);
}

// 4x6 to 2x2 pixels: windows of 2x3 side by side, 5 x 2 x 2 = 20 outputs (80 B) of 6 operations.
TEST(AdaptiveAvgPool, WindowsFollowTheInput) {
  const LayerBench bench{"{type: adaptive_avg_pool, outputs: 2}", {kImage}};
  EXPECT_EQ(bench.output, image(5, 2, 2));
  const auto forward = bench.forward();
  EXPECT_THAT(works_of(forward),
              ElementsAre(moving("avg_pool", KernelKind::pooling, Phase::forward, 120, 480, 80)));
  EXPECT_THAT(works_of(bench.backward()),
              ElementsAre(moving("avg_pool", KernelKind::pooling, Phase::backward_data, 120, 80, 480)));
  const auto& shape = std::get<PoolShape>(forward[0].shape);
  EXPECT_EQ(shape.kernel_height, 2);
  EXPECT_EQ(shape.stride_height, 2);
  EXPECT_EQ(shape.kernel_width, 3);
  EXPECT_EQ(shape.stride_width, 3);
}

// 8 pixels to 3: strides of 2 leave windows of 8 - 2 x 2 = 4. At least as many outputs as pixels: one pixel
// each.
TEST(AdaptiveAvgPool, SizesThatDoNotDivide) {
  const LayerBench uneven{"{type: adaptive_avg_pool, outputs: 3}", {image(1, 8, 3)}};
  EXPECT_EQ(uneven.output, image(1, 3, 3));
  const PoolShape shape = std::get<PoolShape>(uneven.forward()[0].shape);
  EXPECT_EQ(shape.kernel_height, 4);
  EXPECT_EQ(shape.stride_height, 2);
  EXPECT_EQ(shape.kernel_width, 1);
  EXPECT_EQ(shape.stride_width, 1);
  const LayerBench larger{"{type: adaptive_avg_pool, outputs: 7}", {image(1, 2, 2)}};
  EXPECT_EQ(larger.output, image(1, 7, 7));
  EXPECT_EQ(larger.forward()[0].flops, per_sample(49));
}

// Channels that are neighbors are loaded as rows, in half precision.
TEST(BatchNorm, LoadsRowsOfChannelsLast) {
  LayerBench bench{"{type: batch_norm}", {image(4, 6, 6)}};
  const auto timed_as = [&](Layout layout, const Precision& precision) {
    bench.lowering.layout = layout;
    bench.precision = precision;
    return bench.forward().back().timed_as;
  };
  EXPECT_EQ(timed_as(Layout::nhwc, test::kFp16), KernelKind::elementwise);
  EXPECT_EQ(bench.forward().back().access, Access::pixels);
  EXPECT_EQ(timed_as(Layout::nchw, test::kFp16), std::nullopt);
  EXPECT_EQ(timed_as(Layout::nhwc, kPrecisions[0]), std::nullopt);
}

// A channel is a thread block where images are NCHW, or are transposed to it.
TEST(BatchNorm, TakesChannelsInBlocks) {
  LayerBench bench{"{type: batch_norm}", {image(4, 6, 6)}};
  const auto in_blocks = [&](Layout layout, NormLayout norms) {
    bench.lowering.layout = layout;
    bench.lowering.norm_layout = norms;
    for (const Kernel& kernel : bench.forward()) {
      if (kernel.kind == KernelKind::batch_norm) return kernel.channel_blocks;
    }
    return false;
  };
  EXPECT_TRUE(in_blocks(Layout::nchw, NormLayout::any));
  EXPECT_FALSE(in_blocks(Layout::nhwc, NormLayout::any));
  EXPECT_TRUE(in_blocks(Layout::nhwc, NormLayout::nchw));
  EXPECT_FALSE((LayerBench{"{type: batch_norm}", {test::vector(7)}}.forward()[0].channel_blocks))
      << "vectors";
}

}  // namespace
}  // namespace tbdsim
