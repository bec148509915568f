// Window arithmetic of convolutions and poolings, sizes and shapes.
#include "graphs/layers/window.h"

#include <set>

#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim {
namespace {

using Padding = WindowAxis::Padding;
using testing::HasSubstr;
using testing::ThrowsMessage;

WindowAxis axis(std::int64_t kernel, std::int64_t stride, Padding padding, std::int64_t pad = 0) {
  return {.kernel = kernel, .stride = stride, .padding = padding, .pad = pad};
}

Window window_from(const std::string& yaml) {
  const SpecTree tree = parse_spec(yaml, "window.yaml");
  Window window;
  SpecNode(tree).map([&](SpecMap& m) { window = read_window(m); });
  return window;
}

// number: floor((input + 2 pad - kernel) / stride) + 1
TEST(WindowAxis, NumberedPaddingRoundsDown) {
  EXPECT_EQ(axis(7, 2, Padding::number, 3).positions(224, "height"), 112);  // floor(223/2) + 1
  EXPECT_EQ(axis(3, 2, Padding::number, 1).positions(112, "height"), 56);   // floor(111/2) + 1
  EXPECT_EQ(axis(3, 1, Padding::number, 1).positions(14, "height"), 14);
  EXPECT_EQ(axis(11, 4, Padding::number, 2).positions(224, "height"), 55);  // AlexNet: floor(217/4) + 1
  EXPECT_EQ(axis(7, 2, Padding::number, 3).pad_before(224), 3);
}

// same: ceil(input / stride), for any kernel; the odd pixel of padding goes behind, as TensorFlow has it.
TEST(WindowAxis, SamePaddingRoundsUp) {
  EXPECT_EQ(axis(7, 2, Padding::same).positions(224, "height"), 112);
  EXPECT_EQ(axis(3, 2, Padding::same).positions(7, "height"), 4);
  EXPECT_EQ(axis(5, 1, Padding::same).positions(2, "height"), 2);  // smaller than the window
  EXPECT_EQ(axis(7, 2, Padding::same).pad_before(224), 2);         // covers 111*2+7 = 229 = 2 + 224 + 3
  EXPECT_EQ(axis(2, 1, Padding::same).pad_before(5), 0);           // covers 6 = 0 + 5 + 1
  EXPECT_EQ(axis(3, 1, Padding::same).pad_before(14), 1);
  EXPECT_EQ(axis(1, 2, Padding::same).pad_before(7), 0);  // covers 7; never negative
  EXPECT_EQ(axis(1, 3, Padding::same).pad_before(5), 0);  // covers 4 of 5
}

TEST(WindowAxis, ValidStaysInside) {
  EXPECT_EQ(axis(3, 2, Padding::valid).positions(299, "height"),
            149);  // floor(296/2) + 1, Inception-v3's first
  EXPECT_EQ(axis(5, 1, Padding::valid).positions(5, "height"), 1);
  EXPECT_EQ(axis(5, 3, Padding::valid).pad_before(17), 0);
}

// The largest input, window, stride and padding.
TEST(WindowAxis, LargestSizes) {
  constexpr std::int64_t kMost = 1'000'000;
  constexpr std::int64_t kPixels = 1'000'000'000;
  EXPECT_EQ(axis(kMost, kMost, Padding::number, kMost).positions(kPixels, "height"), 1002);
  EXPECT_EQ(axis(kMost, kMost, Padding::same).positions(kPixels, "height"), 1000);
  EXPECT_EQ(axis(kMost, 1, Padding::same).pad_before(kPixels), 499'999);
}

TEST(WindowAxis, WindowLargerThanTheInputIsAnError) {
  EXPECT_THAT([] { (void)axis(5, 1, Padding::valid).positions(4, "height"); },
              ThrowsMessage<ShapeMismatch>(HasSubstr("a window of 5 does not fit an input height of 4")));
  EXPECT_THAT([] { (void)axis(7, 1, Padding::number, 1).positions(4, "width"); },
              ThrowsMessage<ShapeMismatch>(
                  HasSubstr("a window of 7 does not fit an input width of 4 with padding 1")));
  EXPECT_EQ(axis(6, 1, Padding::number, 1).positions(4, "width"), 1);  // 6 pixels with padding: just fits
}

TEST(ReadWindow, OneNumberForBothDirectionsAndStrideOne) {
  const Window w = window_from("{kernel: 3, padding: 1}");
  for (const WindowAxis& side : {w.height, w.width}) {
    EXPECT_EQ(side.kernel, 3);
    EXPECT_EQ(side.stride, 1);
    EXPECT_EQ(side.padding, Padding::number);
    EXPECT_EQ(side.pad, 1);
  }
}

TEST(ReadWindow, HeightAndWidthApart) {
  const Window w = window_from("{kernel: [1, 7], stride: [2, 3], padding: [0, 3]}");
  EXPECT_EQ(w.height.kernel, 1);
  EXPECT_EQ(w.width.kernel, 7);
  EXPECT_EQ(w.height.stride, 2);
  EXPECT_EQ(w.width.stride, 3);
  EXPECT_EQ(w.height.pad, 0);
  EXPECT_EQ(w.width.pad, 3);
}

TEST(ReadWindow, PaddingByName) {
  EXPECT_EQ(window_from("{kernel: 3, padding: same}").width.padding, Padding::same);
  EXPECT_EQ(window_from("{kernel: 3, padding: valid}").height.padding, Padding::valid);
}

TEST(ReadWindow, Errors) {
  const auto message = [](const std::string& yaml, const std::string& part) {
    EXPECT_THAT([&] { (void)window_from(yaml); }, ThrowsMessage<SpecError>(HasSubstr(part))) << yaml;
  };
  message("{kernel: 3, padding: smae}", "did you mean 'same'?");
  message("{kernel: 3}", "padding");
  message("{padding: 1}", "kernel");
  message("{kernel: [1, 2, 3], padding: 0}", "has 3 numbers; expected [height, width]");
  message("{kernel: 0, padding: 0}", "kernel");
  message("{kernel: 3, stride: 0, padding: 0}", "stride");
  message("{kernel: 3, padding: -1}", "padding");
}

TEST(Size, GrowsWithTheBatch) {
  EXPECT_EQ((Size{3, 5}).at(4), 23.0);
  EXPECT_EQ((Size{3, 5}) + (Size{1, 2}), (Size{4, 7}));
  EXPECT_EQ((Size{3, 5}) * 2, (Size{6, 10}));
}

TEST(Size, OverflowIsAnError) {
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_THROW((void)((Size{large, 0}) + (Size{large, 0})), std::overflow_error);
  EXPECT_THROW((void)((Size{0, large}) * 2), std::overflow_error);
  const Shape shape{{0, 1}, {1'000'000'000, 1'000'000'000, 10}};  // 1e19 > 2^63 = 9.2e18
  EXPECT_THROW((void)elements(shape), std::overflow_error);
}

TEST(Shape, Text) {
  EXPECT_EQ(to_text(test::image(64, 112, 112)), "64x112x112");
  EXPECT_EQ(to_text(test::vector(1000)), "1000");
  EXPECT_EQ(to_text(Shape{{0, 1}, {}}), "scalar");
}

// At a batch of 8. Padding is printed unless it centres the window (3 for a width of 7, 1 for 3).
TEST(Kernel, ShapeText) {
  const auto text = [](const std::string& yaml, const Shape& input, std::size_t kernel = 0) {
    return shape_text(test::LayerBench(yaml, {input}).forward().at(kernel), 8);
  };
  const Shape picture = test::image(4, 5, 17);
  EXPECT_EQ(text("{type: conv2d, filters: 2, kernel: [1, 7], stride: [1, 2], padding: [0, 3]}", picture),
            "8x4x5x17 2x1x7/1x2");
  EXPECT_EQ(text("{type: conv2d, filters: 2, kernel: 1, padding: 0}", picture), "8x4x5x17 2x1x1");
  EXPECT_EQ(text("{type: conv2d, filters: 2, kernel: 3, padding: valid}", picture), "8x4x5x17 2x3x3 p0");
  EXPECT_EQ(text("{type: fully_connected, outputs: 10}", test::vector(16)), "m10 n8 k16 TN");
  EXPECT_EQ(text("{type: fully_connected, outputs: 10}", test::vector(16), 1),
            "8x10");  // the bias of each output
  EXPECT_EQ(text("{type: max_pool, kernel: 3, stride: 2, padding: same}", picture), "8x4x5x17 3x3/2");
  EXPECT_EQ(text("{type: global_avg_pool}", picture), "8x4x5x17 5x17 p0");
  EXPECT_EQ(text("{type: batch_norm}", picture), "8x4x5x17");
  EXPECT_EQ(text("{type: relu}", picture), "2720");  // 8 x 340 elements
}

// A bias has a row for each pixel: 8 x 80 rows of 4 channels.
TEST(Kernel, ShapeOfABias) {
  const test::LayerBench conv{"{type: conv2d, filters: 4, kernel: 3, padding: 1, bias: true}",
                              {test::image(3, 8, 10)}};
  EXPECT_EQ(std::get<MatrixShape>(conv.forward()[1].shape), (MatrixShape{.rows = {0, 80}, .columns = 4}));
  EXPECT_EQ(std::get<MatrixShape>(conv.backward()[0].shape), (MatrixShape{.rows = {0, 80}, .columns = 4}));
}

// Asymmetric pooling: its window as the convolution's (conv2d_test.cpp).
TEST(Kernel, ShapeOfAPooling) {
  const test::LayerBench pool{"{type: avg_pool, kernel: [1, 7], stride: [1, 2], padding: [0, 3]}",
                              {test::image(4, 5, 17)}};
  EXPECT_EQ(pool.output, test::image(4, 5, 9));
  const PoolShape expected{.input = {{0, 1}, 4, 5, 17},
                           .kernel_height = 1,
                           .kernel_width = 7,
                           .stride_height = 1,
                           .stride_width = 2,
                           .pad_height = 0,
                           .pad_width = 3};
  EXPECT_EQ(std::get<PoolShape>(pool.forward()[0].shape), expected);
  EXPECT_EQ(std::get<PoolShape>(pool.backward()[0].shape), expected);
}

// No type is named twice, and a misspelt one is found by its neighbour.
TEST(LayerTypes, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const LayerType& type : layer_types()) EXPECT_TRUE(names.insert(type.name).second) << type.name;
  EXPECT_THAT([] { (void)test::make_layer("{type: conv2s, filters: 3}"); },
              ThrowsMessage<SpecError>(HasSubstr("did you mean 'conv2d'?")));
}

}  // namespace
}  // namespace tbdsim
