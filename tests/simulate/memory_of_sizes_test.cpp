// Memory that an allocator keeps of images of other sizes.
#include <algorithm>

#include <gtest/gtest.h>

#include "simulate/analysis/fragmentation.h"
#include "simulate/prediction/predict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

constexpr ImageSides kSides{.shorter = 600, .longest = 1200};

// 500x375 become 800x600; 3 x 1 would be 1800x600 and is cut.
TEST(ScaledImage, KeepsItsRatio) {
  EXPECT_EQ(scaled_image(500.0 / 375, kSides), (ImageSize{600, 800}));
  EXPECT_EQ(scaled_image(375.0 / 500, kSides), (ImageSize{800, 600}));
  EXPECT_EQ(scaled_image(500.0 / 333, kSides), (ImageSize{600, 901}));
  EXPECT_EQ(scaled_image(3, kSides), (ImageSize{600, 1200}));
  EXPECT_EQ(scaled_image(1, kSides), (ImageSize{600, 600}));
}

// A quarter upright, wherever the sequence starts.
TEST(SequenceOfSizes, FollowsTheShares) {
  const RatioBin ratios[] = {{0.75, 0.75, 0.25}, {1.2, 1.4, 0.75}};
  for (const double start : {0.0, 0.2, 0.9}) {
    const auto sizes = sequence_of_sizes(ratios, kSides, 1000, start);
    const auto upright = std::count(sizes.begin(), sizes.end(), ImageSize{800, 600});
    EXPECT_NEAR(static_cast<double>(upright), 250, 3);
    for (const ImageSize& size : sizes) {
      if (size.height == 800) continue;
      EXPECT_EQ(size.height, 600);
      EXPECT_GE(size.width, 720);
      EXPECT_LE(size.width, 840);
    }
  }
}

class ReservedOverSizes : public testing::Test {
 protected:
  std::optional<Bytes> reserved(const Scenario& scenario) {
    return reserved_over_sizes(predict(scenario, specs_), specs_);
  }
  SpecCache specs_ = test::source_specs();
  Scenario scenario_{.model = "faster_rcnn_c4",
                     .framework = "pytorch_1_0",
                     .gpu = "titanxp",
                     .batch = 1,
                     .variant = "jwyang_vgg16"};
};

// More than images of one size need, less than twice the largest of them. Of two images: beside one, the
// temporary gradient of fc6 (25088 x 4096 x 4 B) is most of what varies, and its block serves all sizes.
TEST_F(ReservedOverSizes, BlocksOfOtherSizesPileUp) {
  scenario_.batch = 2;
  const Bytes kept = reserved(scenario_).value();
  EXPECT_GT(kept / predict(scenario_, specs_).memory.model(), 1.2);
  Scenario largest = scenario_;
  largest.sizes = {{"image_height", 600}, {"image_width", 1200}};
  EXPECT_LT(kept / predict(largest, specs_).memory.model(), 2);
}

// The allocator reserves at most the card's memory without the context, if one image fits into it.
TEST_F(ReservedOverSizes, NoMoreThanTheCardHas) {
  scenario_.gpu = "p4000";
  scenario_.batch = 4;
  const Prediction p = predict(scenario_, specs_);
  EXPECT_LE(reserved(scenario_).value() + p.memory.context, p.usable_memory());
}

TEST_F(ReservedOverSizes, OnlyWhereSizesAreKnownToDiffer) {
  Scenario one_size = scenario_;
  one_size.sizes = {{"image_height", 600}, {"image_width", 800}};
  EXPECT_FALSE(reserved(one_size));
  scenario_.variant = "detectron2_r50";
  EXPECT_FALSE(reserved(scenario_));
  EXPECT_FALSE(reserved({.model = "resnet50", .framework = "mxnet", .gpu = "titanxp", .batch = 1}));
}

}  // namespace
}  // namespace tbdsim
