// ResNet-50 as three frameworks of the TBD suite train it: sums of gradients, and what each framework keeps
// for the backward pass. Its layers are in model_layers_test.cpp.
#include <algorithm>

#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

Model build(const std::string& variant) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/resnet50.yaml");
  return build_model(file, find_variant(file, variant, ""));
}

class ResNet50 : public testing::TestWithParam<const char*> {};

// Each of the 16 units ends in an addition, and each opens with a tensor that two layers read: the branch and
// the shortcut (the addition itself in identity units). Its two gradients are summed once.
TEST_P(ResNet50, OneGradientSumForEachUnit) {
  const TrainingStep step = test::step_of(build(GetParam()));
  const auto runs = [&](std::string_view op) {
    return std::count_if(step.kernels.begin(), step.kernels.end(),
                         [&](const Kernel& k) { return k.op == op; });
  };
  EXPECT_EQ(runs("add"), 16);
  EXPECT_EQ(runs("gradient_sum"), 16);
}

INSTANTIATE_TEST_SUITE_P(Variants, ResNet50, testing::Values("slim_v2", "mxnet_v2", "v1.5"));

constexpr std::int64_t kImageElements = 3 * 224 * 224;

// Kept under MXNet's rules (operators' DeclareBackwardDependency: a convolution its input, a norm its input,
// an activation input and output, a pooling input and output), counted beside the layer table: 29,582,800
// elements an image. That count leaves out the image, which the first norm reads again (+150,528), and counts
// the 1000 scores of fc1, which nothing reads again: softmax keeps its own output (-1000).
TEST(ResNet50Stash, MxnetKeepsInputsAndOutputsOfActivations) {
  const Model model = build("mxnet_v2");
  const TrainingStep step = test::step_of(model, {.relu_keeps = ReluKeeps::input_and_output});
  EXPECT_EQ(test::kept_for_backward(step), (Size{0, 4 * (29'582'800 + kImageElements - 1000)}));
}

// Under TensorFlow's rules (ReluGrad the output alone, FusedBatchNormGrad and convolutions their inputs,
// MaxPoolGrad both): 15,483,346 elements, again without the image, which conv1 reads again, and with the 1001
// scores.
TEST(ResNet50Stash, TensorFlowKeepsOutputsOfActivations) {
  const Model model = build("slim_v2");
  const TrainingStep step = test::step_of(model, {.relu_keeps = ReluKeeps::output});
  EXPECT_EQ(test::kept_for_backward(step), (Size{0, 4 * (15'483'346 + kImageElements - 1001)}));
}

// In place, ReLU's output takes the place of its input, a norm's or an addition's output. Kept are: the
// image, the output of every convolution (for its norm) and of every relu (for itself and what reads it), and
// what pool1, avgpool and softmax put out.
TEST(ResNet50Stash, InPlaceReluKeepsOneTensor) {
  const Model model = build("v1.5");
  std::int64_t elements = kImageElements;
  for (const GraphLayer& layer : model.graphs.at("main").layers) {
    const std::string& type = layer.spec.type;
    if (type == "conv2d" || type == "relu" || type == "max_pool" || type == "global_avg_pool" ||
        type == "softmax_loss") {
      elements += elements_per_row(layer.output);
    }
  }
  const TrainingStep step = test::step_of(model, {.relu_keeps = ReluKeeps::output, .relu_in_place = true});
  EXPECT_EQ(test::kept_for_backward(step), (Size{0, 4 * elements}));
}

}  // namespace
}  // namespace tbdsim
