// Detectors on a pyramid of features: weights that its levels share, shapes of the levels, what a head on
// several levels is made of.
#include <algorithm>

#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::Pair;

Model build(const std::string& model, const std::string& variant, const Sizes& sizes = {}) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/" + model + ".yaml");
  return build_model(file, find_variant(file, variant, ""), sizes);
}

const LayerSummary& layer_of(const TrainingStep& step, std::string_view name) {
  return *std::find_if(step.layers.begin(), step.layers.end(),
                       [&](const LayerSummary& layer) { return layer.name == name; });
}

std::int64_t parameters_of(const TrainingStep& step) {
  std::int64_t sum = 0;
  for (const LayerSummary& layer : step.layers) sum += layer.trained_parameters;
  return sum;
}

// torchvision's detectors have 41,755,286 and 44,401,393 parameters: 222,400 of them stem and stage 1, which
// are frozen, and 91 classes, of which each has 1025 weights for a score and 4 x 1025 for offsets (the
// background, too) and 257 for a mask.
TEST(FasterRcnnFpn, ParametersOfTorchvision) {
  constexpr std::int64_t kFrozen = 222'400;
  constexpr std::int64_t kScore = 1025;
  const Sizes boxes{{"head_scores", 91}, {"offsets", 4 * 91}};
  Sizes masks = boxes;
  masks["mask_scores"] = 91;
  const auto trained = [](const char* model, const Sizes& classes) {
    return parameters_of(test::step_of(build(model, "detectron2_r50", classes)));
  };
  EXPECT_EQ(trained("faster_rcnn_fpn", boxes) + kFrozen, 41'755'286);
  EXPECT_EQ(trained("mask_rcnn_fpn", masks) + kFrozen, 44'401'393);
  EXPECT_EQ(parameters_of(test::step_of(build("faster_rcnn_fpn", "detectron2_r50"))),
            41'755'286 - kFrozen - (10 + 4 * 11) * kScore);
}

// 800x1344 pixels: a quarter on the first level, half of that on each further one, the last rounded up.
TEST(FasterRcnnFpn, LevelsOfThePyramid) {
  const TrainingStep step = test::step_of(build("faster_rcnn_fpn", "detectron2_r50"));
  const auto dims = [&](const char* name) { return layer_of(step, name).output.dims; };
  EXPECT_THAT(dims("p2"), ElementsAre(256, 200, 336));
  EXPECT_THAT(dims("p3"), ElementsAre(256, 100, 168));
  EXPECT_THAT(dims("p4"), ElementsAre(256, 50, 84));
  EXPECT_THAT(dims("p5"), ElementsAre(256, 25, 42));
  EXPECT_THAT(dims("p6"), ElementsAre(256, 13, 21));
  // Three anchors in each of 89,523 cells; of each level 2000 compete, of the last its 819.
  EXPECT_EQ(layer_of(step, "rpn_rows").output, (Shape{{0, 3 * 89'523}, {1}}));
  EXPECT_EQ(layer_of(step, "rpn_offset_rows").output, (Shape{{0, 3 * 89'523}, {4}}));
  EXPECT_EQ(layer_of(step, "rpn_proposals").output, (Shape{{0, 4 * 2000 + 819}, {5}}));
  EXPECT_EQ(layer_of(step, "roi_align").output, (Shape{{0, 512}, {256, 7, 7}}));
}

// The convolutions over anchors run on five levels with one set of weights.
TEST(FasterRcnnFpn, LevelsShareTheirWeights) {
  const TrainingStep step = test::step_of(build("faster_rcnn_fpn", "detectron2_r50"),
                                          {.step_gradients = GradientAccumulation::added});
  EXPECT_EQ(layer_of(step, "rpn2/conv").trained_parameters, 9 * 256 * 256 + 256);
  EXPECT_EQ(layer_of(step, "rpn2/scores").trained_parameters, 3 * 257);
  EXPECT_EQ(layer_of(step, "rpn2/offsets").trained_parameters, 12 * 257);
  std::int64_t convolutions = 0;
  std::int64_t sums = 0;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.layer < 0) continue;
    const std::string& name = step.layers[static_cast<std::size_t>(kernel.layer)].name;
    const bool weights = kernel.phase == Phase::backward_weights;
    convolutions += weights && name.starts_with("rpn") && kernel.kind == KernelKind::convolution;
    sums += weights && kernel.op == "accumulate";
  }
  EXPECT_EQ(convolutions, 5 * 3);
  EXPECT_EQ(sums, 4 * 3 * 2);  // of weight and bias of three layers on each further level
  for (const char* level : {"rpn3", "rpn4", "rpn5", "rpn6"})
    EXPECT_EQ(layer_of(step, std::string(level) + "/conv").trained_parameters, 0);
}

// 128 of 512 regions have a mask: four convolutions of 14x14, 28x28 after the fifth, one mask a class.
TEST(MaskRcnnFpn, MasksOfAQuarterOfTheRegions) {
  const TrainingStep step = test::step_of(build("mask_rcnn_fpn", "detectron2_r50"));
  EXPECT_EQ(layer_of(step, "mask4").output, (Shape{{0, 128}, {256, 14, 14}}));
  EXPECT_EQ(layer_of(step, "mask_up").output, (Shape{{0, 128}, {256, 28, 28}}));
  EXPECT_EQ(layer_of(step, "mask_scores").output, (Shape{{0, 128}, {80, 28, 28}}));
  EXPECT_EQ(layer_of(step, "mask_loss").output, (Shape{{0, 128}, {1, 28 * 28}}));
}

// In mixed precision the norms of maskrcnn-benchmark write fp32 and the next convolution reads a half: the
// first of stage 2 are 128 channels of 100x168 pixels. detectron2's norms write what they read.
TEST(MaskRcnnFpn, FrozenNormsInSinglePrecision) {
  const Size map{0, 128 * 100 * 168};
  const auto step = [](const char* variant) {
    return test::step_of(build("mask_rcnn_fpn", variant), {.global_norm = GlobalNorm::composite},
                         kPrecisions[5]);
  };
  // Bytes that the layer's forward kernels of that name read and write.
  const auto moved = [](const TrainingStep& in, std::string_view layer, std::string_view op) {
    std::vector<std::pair<Size, Size>> bytes;
    for (const Kernel& kernel : in.kernels) {
      if (kernel.op != op || kernel.phase != Phase::forward || kernel.layer < 0) continue;
      if (in.layers[static_cast<std::size_t>(kernel.layer)].name == layer)
        bytes.emplace_back(kernel.read_bytes, kernel.written_bytes);
    }
    return bytes;
  };
  const TrainingStep wide = step("maskrcnn_benchmark_r50");
  EXPECT_THAT(moved(wide, "stage2/1/conv1/norm", "shift"), ElementsAre(Pair(map * 4, map * 4)));
  EXPECT_THAT(moved(wide, "stage2/1/conv1/relu", "relu"), ElementsAre(Pair(map * 4, map * 4)));
  EXPECT_THAT(moved(wide, "stage2/1/conv2", "cast"), Contains(Pair(map * 4, map * 2)));
  const TrainingStep half = step("detectron2_r50");
  EXPECT_THAT(moved(half, "stage2/1/conv1/norm", "shift"), ElementsAre(Pair(map * 2, map * 2)));
  EXPECT_THAT(moved(half, "stage2/1/conv2", "cast"), Not(Contains(Pair(map * 4, map * 2))));
}

// On what the C4 network's last stage makes of regions: 2048 channels of 7x7, four squares of each pixel.
TEST(MaskRcnnC4, MasksFromTheFeaturesOfBoxes) {
  const TrainingStep step = test::step_of(build("mask_rcnn_c4", "detectron2_r50"));
  EXPECT_EQ(layer_of(step, "mask_features").output, (Shape{{0, 128}, {2048, 7, 7}}));
  EXPECT_EQ(layer_of(step, "mask_scores").output, (Shape{{0, 128}, {80, 14, 14}}));
  EXPECT_EQ(parameters_of(step), parameters_of(test::step_of(build("faster_rcnn_c4", "detectron2_r50"))) +
                                     (2048 * 4 + 1) * 256 + 257 * 80);
}

}  // namespace
}  // namespace tbdsim
