// Faster R-CNN beyond its layer tables: other images, other numbers of regions, what is trained, what crosses
// the bus.
#include <algorithm>

#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using testing::ElementsAre;

ModelFile file() { return read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/faster_rcnn.yaml"); }

Model build(const std::string& variant, const Sizes& sizes = {}) {
  return build_model(file(), find_variant(file(), variant, ""), sizes);
}

struct Macs {
  std::int64_t forward = 0, training = 0;

  friend bool operator==(const Macs&, const Macs&) = default;
};
void PrintTo(const Macs& macs, std::ostream* out) { *out << macs.forward << ", " << macs.training; }

Macs macs_of(const Model& model) {
  Macs macs;
  for (const LayerSummary& layer : test::step_of(model).layers) {
    macs.forward += layer.forward_macs.per_sample;
    macs.training += layer.training_macs.per_sample;
  }
  return macs;
}

// Counted by the script that made the layer tables. The features are 1/16 of the image, rounded up at each of
// four halvings: 38x50 for 600x800, 38x54 for 857, 38x57 for 900, 38x63 for 1000 columns. Backbone and
// proposals grow with them, the head does not.
struct ImageCase {
  const char* variant;
  std::int64_t width;
  Macs macs;
};
constexpr ImageCase kImages[] = {{"slim_v1", 800, {119'544'668'160, 357'505'044'480}},
                                 {"slim_v1", 857, {125'326'052'608, 374'767'348'224}},
                                 {"slim_v1", 900, {129'551'071'744, 387'383'135'232}},
                                 {"slim_v1", 1000, {138'301'398'016, 413'492'994'048}},
                                 {"mxnet_v2", 800, {180'144'840'704, 523'431'002'112}},
                                 {"mxnet_v2", 857, {186'222'292'224, 540'388'822'272}},
                                 {"mxnet_v2", 900, {190'633'880'064, 552'767'764'992}},
                                 {"mxnet_v2", 1000, {199'860'562'944, 578'327'288'832}},
                                 {"v1.5", 1000, {199'860'562'944, 578'327'288'832}}};

TEST(FasterRcnn, WorkFollowsTheImage) {
  for (const auto& [variant, width, macs] : kImages) {
    SCOPED_TRACE(std::string(variant) + " " + std::to_string(width));
    const Sizes sizes{{"image_height", 600}, {"image_width", width}};
    EXPECT_EQ(macs_of(build(variant, sizes)), macs);
    EXPECT_EQ(macs_of(resized(build(variant), sizes)), macs);
  }
}

// The head's multiply-adds are all those of rows that regions make: 103,610,056,704 for 128 of MXNet's
// regions, 46,872,002,560 for 64 of TensorFlow's. With 32 a quarter and a half are left.
TEST(FasterRcnn, RegionsChangeTheHeadAlone) {
  EXPECT_EQ(macs_of(build("mxnet_v2", {{"rois", 32}})).forward, 180'144'840'704 - 103'610'056'704 / 4 * 3);
  EXPECT_EQ(macs_of(build("slim_v1", {{"rois", 32}})).forward, 119'544'668'160 - 46'872'002'560 / 2);
  const auto regions = [](const LayerSummary& layer) { return layer.output.rows == Size{0, 32}; };
  const TrainingStep few = test::step_of(build("mxnet_v2", {{"rois", 32}}));
  const TrainingStep many = test::step_of(build("mxnet_v2"));
  ASSERT_EQ(few.layers.size(), many.layers.size());
  for (std::size_t i = 0; i < few.layers.size(); ++i) {
    const std::int64_t times = regions(few.layers[i]) ? 4 : 1;
    EXPECT_EQ(few.layers[i].forward_macs * times, many.layers[i].forward_macs) << few.layers[i].name;
  }
}

// Frozen layers below the first trained convolution have no backward kernel, and convolutions that read it no
// gradient by their input: 2 of them (the branch and the shortcut of stage 2's first unit).
TEST(FasterRcnn, NoGradientBelowTheFirstTrainedLayer) {
  for (const auto& [variant, first] :
       {std::pair{"mxnet_v2", "stage2_unit1_conv1"}, {"v1.5", "block2/unit_1/shortcut"}}) {
    const TrainingStep step = test::step_of(build(variant));
    const auto begin =
        std::find_if(step.layers.begin(), step.layers.end(),
                     [&, name = std::string(first)](const LayerSummary& l) { return l.name == name; });
    ASSERT_NE(begin, step.layers.end());
    const int first_layer = static_cast<int>(begin - step.layers.begin());
    int without_input_gradient = 0;
    for (const Kernel& kernel : step.kernels) {
      if (kernel.phase == Phase::forward || kernel.phase == Phase::update || kernel.layer < 0) continue;
      EXPECT_GE(kernel.layer, first_layer) << step.layers[static_cast<std::size_t>(kernel.layer)].name;
    }
    for (const LayerSummary& layer : step.layers) {
      if (layer.type == "conv2d" && layer.training_macs == layer.forward_macs * 2) ++without_input_gradient;
    }
    EXPECT_EQ(without_input_gradient, 2) << variant;
  }
}

// Regions are chosen, not computed: their coordinates pass no gradient to the proposals.
TEST(FasterRcnn, RegionsPassNoGradient) {
  for (const char* variant : {"slim_v1", "mxnet_v2", "v1.5"}) {
    const TrainingStep step = test::step_of(build(variant));
    for (const Kernel& kernel : step.kernels) {
      const std::string& type = step.layers[static_cast<std::size_t>(std::max(0, kernel.layer))].type;
      if (type == "proposal" || type == "proposal_target" || type == "anchor_target") {
        EXPECT_EQ(kernel.phase, Phase::forward) << type;
      }
    }
  }
}

// Bytes between GPU and host, to the host and to the device.
std::pair<double, double> transfers(const TrainingStep& step) {
  std::pair<double, double> bytes{0, 0};
  for (const Kernel& kernel : step.kernels) {
    if (kernel.kind != KernelKind::transfer) continue;
    bytes.first += kernel.read_bytes.at(1);
    bytes.second += kernel.written_bytes.at(1);
  }
  return bytes;
}

// 38 x 50 x 9 = 17,100 anchors at 600x800. MXNet: the mask of 12,000 boxes, 188 words of 8 B each, and 2000
// proposals of 5 numbers go to the host; targets of all anchors (9 numbers), 12,000 indices and 128 regions
// of 5 + 1 + 84 + 84 numbers come back. TensorFlow: 5954 anchors lie within the image (counted one by one by
// a script); their boxes and scores go to the host, their indices, targets and 64 regions of 14 numbers come
// back. PyTorch: five counts of 8 B. slim keeps its 47,453,915 variables and the moving statistics of its
// norms on the host: all go to the device, the gradients come back.
TEST(FasterRcnn, WhatCrossesTheBus) {
  EXPECT_EQ(transfers(test::step_of(build("mxnet_v2"))),
            std::pair(12'000.0 * 188 * 8 + 2000 * 5 * 4, 4.0 * (17'100 * 9 + 12'000 + 128 * 174)));
  const TrainingStep slim = test::step_of(build("slim_v1"));
  double statistics = 0;
  for (const LayerSummary& layer : slim.layers) statistics += static_cast<double>(layer.statistics);
  EXPECT_EQ(transfers(slim), std::pair(5954.0 * 5 * 4 + 4.0 * 47'453'915,
                                       4.0 * (5954 + 5954 * 9 + 64 * 14) + 4.0 * (47'453'915 + statistics)));
  EXPECT_EQ(transfers(test::step_of(build("v1.5"))), std::pair(5 * 8.0, 0.0));
}

// Frozen with the trained parameters: mxnet_v2 320,198 (stem, stage 1, all scales and shifts), v1.5 327,744,
// together the 47,462,111 of the training script; slim_v1 none.
TEST(FasterRcnn, FrozenParameters) {
  std::vector<std::int64_t> frozen;
  for (const char* variant : {"slim_v1", "mxnet_v2", "v1.5"}) {
    frozen.push_back(0);
    for (const LayerSummary& layer : test::step_of(build(variant)).layers)
      frozen.back() += layer.frozen_parameters;
  }
  EXPECT_THAT(frozen, ElementsAre(0, 320'198, 47'462'111 - 47'134'367));
}

}  // namespace
}  // namespace tbdsim
