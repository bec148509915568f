// Layers of detectors on a pyramid of features: regions on several levels, rows joined, masks.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::per_sample;
using test::works_of;
using testing::ElementsAre;
using testing::IsEmpty;

Shape rows(std::int64_t count, std::int64_t numbers) { return {per_sample(count), {numbers}}; }

std::vector<std::string_view> ops_of(const std::vector<Kernel>& kernels) {
  std::vector<std::string_view> ops;
  for (const Kernel& kernel : kernels) ops.push_back(kernel.op);
  return ops;
}

// Nine regions of 5 channels, 2x2 each, 180 numbers: five from the level of 8x8 pixels, four from the other.
TEST(CropAndResize, OnSeveralLevels) {
  LayerBench bench{"{type: crop_and_resize, size: 2}", {image(5, 8, 8), image(5, 4, 4), rows(9, 14)}};
  EXPECT_EQ(bench.output, (Shape{per_sample(9), {5, 2, 2}}));
  const auto forward = bench.forward();
  EXPECT_THAT(ops_of(forward), ElementsAre("device_to_host", "gather", "crop_and_resize", "place_regions",
                                           "device_to_host", "gather", "crop_and_resize", "place_regions"));
  EXPECT_EQ(forward[2].written_bytes, per_sample(4 * 20 * 4));
  EXPECT_EQ(forward[6].written_bytes, per_sample(5 * 20 * 4));
  EXPECT_EQ(forward[2].read_bytes, per_sample(5 * 64 * 4 + 4 * 5 * 4));
  const auto backward = bench.backward();
  EXPECT_THAT(ops_of(backward), ElementsAre("place_regions", "fill", "crop_and_resize", "place_regions",
                                            "fill", "crop_and_resize"));
  EXPECT_EQ(backward[1].written_bytes, per_sample(5 * 64 * 4));
  EXPECT_EQ(backward[4].written_bytes, per_sample(5 * 16 * 4));
  const std::vector<Shape> channels{image(5, 8, 8), image(6, 4, 4), rows(9, 14)};
  EXPECT_THROW((void)bench.layer->output_shape(channels), ShapeMismatch);
}

TEST(Concat, Rows) {
  const LayerBench bench{"{type: concat, axis: rows}", {rows(10, 4), rows(3, 4)}};
  EXPECT_EQ(bench.output, rows(13, 4));
  const std::vector<Shape> unlike{rows(10, 4), rows(10, 3)};
  EXPECT_THROW((void)bench.layer->output_shape(unlike), ShapeMismatch);
}

TEST(SelectRows, SoManyOfASample) {
  const LayerBench bench{"{type: select_rows, rows: 3}", {rows(10, 4)}};
  EXPECT_EQ(bench.output, rows(3, 4));
  const std::vector<Shape> few{rows(2, 4)};
  EXPECT_THROW((void)bench.layer->output_shape(few), ShapeMismatch);
}

TEST(Proposal, OfOneScoreEach) {
  const LayerBench bench{"{type: proposal, before: 200, after: 50, suppression: device}",
                         {rows(1000, 1), rows(1000, 4)}};
  EXPECT_EQ(bench.output, rows(50, 5));
  EXPECT_EQ(bench.forward()[0].op, "sigmoid");
}

// Six numbers of each of 1000 anchors and 63 objects, of one image at a time.
TEST(AnchorTarget, HoldsPairsOfTheLargestImage) {
  const LayerBench bench{
      "{type: anchor_target, on: device, samples: 256, objects: 7, most_objects: 63, pair_numbers: 6}",
      {rows(1000, 1)}};
  EXPECT_EQ(bench.forward()[0].op, "box_overlap");
  EXPECT_EQ(bench.forward()[0].scratch_bytes, (Size{1000 * 63 * 6 * 4, 0}));
}

// Composed in PyTorch of 13 operations and a mean; the gradient is sigmoid(x) - t, times what comes in.
TEST(LogisticLoss, AnOperationForEachTerm) {
  LayerBench bench{"{type: logistic_loss}", {rows(256, 1)}};
  std::int64_t runs = 0;
  for (const Kernel& kernel : bench.forward()) runs += kernel.repeat;
  EXPECT_EQ(runs, 14);
  EXPECT_THAT(ops_of(bench.backward()), ElementsAre("sigmoid", "sub", "mul"));
  EXPECT_TRUE(bench.needs().inputs);
  EXPECT_TRUE(bench.layer->is_loss());
  bench.input_gradient = false;
  EXPECT_THAT(bench.backward(), IsEmpty());
}

// 3 channels of 5x6 to 4 of 10x12: each of 90 numbers is multiplied by 4 x 2 x 2 weights.
TEST(ConvTranspose2d, SquaresOfPixels) {
  const LayerBench bench{"{type: conv_transpose2d, filters: 4, kernel: 2}", {image(3, 5, 6)}};
  EXPECT_EQ(bench.output, image(4, 10, 12));
  const auto parameters = bench.layer->parameters(bench.inputs);
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].elements, 3 * 4 * 4);
  EXPECT_EQ(parameters[1].elements, 4);
  const auto forward = bench.forward();
  EXPECT_THAT(ops_of(forward), ElementsAre("conv_transpose", "bias_add"));
  EXPECT_EQ(forward[0].macs, per_sample(90 * 16));
  EXPECT_EQ(forward[0].written_bytes, per_sample(480 * 4));
  const auto backward = bench.backward();
  EXPECT_THAT(ops_of(backward), ElementsAre("bias_gradient", "conv_transpose", "conv_transpose"));
  EXPECT_EQ(backward[2].written_bytes, per_sample(90 * 4));
}

// In place only the output is left to keep; of a ReLU beside its input frameworks keep what they read again.
TEST(Relu, KeepsWhatItReadsAgain) {
  const auto needs = [](const char* yaml, ReluKeeps keeps, bool in_place) {
    LayerBench bench{yaml, {image(3, 5, 6)}};
    bench.lowering.relu_keeps = keeps;
    bench.lowering.relu_in_place = in_place;
    return std::pair(bench.needs().inputs, bench.needs().output);
  };
  constexpr const char* kOwn = "{type: relu, in_place: false}";
  EXPECT_EQ(needs("{type: relu}", ReluKeeps::input, true), std::pair(false, true));
  EXPECT_EQ(needs(kOwn, ReluKeeps::input, true), std::pair(true, false));
  EXPECT_EQ(needs(kOwn, ReluKeeps::output, true), std::pair(false, true));
  EXPECT_EQ(needs(kOwn, ReluKeeps::input_and_output, true), std::pair(true, true));
}

}  // namespace
}  // namespace tbdsim
