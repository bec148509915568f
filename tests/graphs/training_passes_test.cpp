// Passes of several runs, a gradient penalty, and layers that run step by step, by hand.
#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using test::kernels_of;
using test::model_text;
using test::program;
using test::small_model;
using test::step_of;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* kTwoGraphs =
    "title: T\nsample: image\nvariants:\n  v: {description: d, source: s, optimizer: sgd}\n"
    "graphs:\n"
    "  maker: {inputs: {noise: [4]}, outputs: [image], "
    "layers: [{name: image, type: fully_connected, outputs: 6, bias: false}]}\n"
    "  judge: {inputs: {image: [6]}, "
    "layers: [{name: score, type: fully_connected, outputs: 2, bias: false}, {name: loss, type: "
    "softmax_loss}]}\n"
    "training:\n";

// The maker is trained through the judge: both forward, the judge back to its input without gradients of its
// weights, the maker back, one update.
TEST(TrainingPasses, RunsGoForwardInOrderAndBackInReverse) {
  const TrainingStep step = step_of(test::model_from(
      std::string(kTwoGraphs) + "  - {runs: [{graph: maker}, {graph: judge, backward: inputs}]}\n"));
  EXPECT_THAT(program(step), testing::ElementsAre("matmul forward", "matmul forward", "softmax_loss forward",
                                                  "softmax_loss backward_data", "matmul backward_data",
                                                  "matmul backward_weights", "sgd update"));
  // The maker's output, 6 words, is kept for no kernel; its weights have gradients, the judge's have none.
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role == TensorRole::weight_gradients) {
      EXPECT_EQ(step.layers[static_cast<std::size_t>(tensor.layer)].name, "image");
    }
  }
}

// Real and made images in one step: the judge runs forward and backward twice and is updated once.
TEST(TrainingPasses, AGraphRunTwiceInAPassIsUpdatedOnce) {
  const TrainingStep step = step_of(test::model_from(
      std::string(kTwoGraphs) +
      "  - {runs: [{graph: maker, backward: none}, {graph: judge}, {graph: judge}], repeat: 5}\n"));
  EXPECT_EQ(kernels_of(step, "sgd").size(), 1u);
  EXPECT_EQ(kernels_of(step, "sgd")[0].repeat, 5);
  EXPECT_EQ(kernels_of(step, "softmax_loss").size(), 4u);
  // Forward once: 12; in an iteration 5 x (2 forward and 2 weights' gradients of 12).
  for (const LayerSummary& layer : step.layers) {
    if (layer.name != "score") continue;
    EXPECT_EQ(layer.forward_macs, (Size{0, 12}));
    EXPECT_EQ(layer.training_macs, (Size{0, 5 * 4 * 12}));
  }
}

// A gradient penalty over one product W of 12: forward (12), back to the input (12), then its second order:
// the norm of the input's gradient and its derivative, along the graph (12) and the weights' gradient (12).
TEST(TrainingPasses, GradientPenaltyGoesBackTwice) {
  const std::string text =
      model_text("[6]", "      - {name: score, type: fully_connected, outputs: 2, bias: false}\n", "sgd",
                 "[{graph: main, backward: penalty}]");
  const TrainingStep step = step_of(test::model_from(text));
  EXPECT_THAT(program(step), testing::ElementsAre("matmul forward", "matmul backward_data",
                                                  "norm backward_data", "scale backward_data",
                                                  "matmul forward", "matmul backward_weights", "sgd update"));
  EXPECT_EQ(step.kernels[1].second_order, false);
  EXPECT_EQ(phase_name(step.kernels[4]), "double_backward");
  EXPECT_EQ(step.layers[0].forward_macs, (Size{0, 12}));
  EXPECT_EQ(step.layers[0].training_macs, (Size{0, 48}));
}

TEST(TrainingPassesErrors, PenaltyThroughALayerWithoutSecondOrder) {
  const std::string text = model_text("[6]", "      - {name: loss, type: softmax_loss}\n", "sgd",
                                      "[{graph: main, backward: penalty}]");
  const Model model = test::model_from(text);
  EXPECT_THAT([&] { (void)step_of(model); },
              ThrowsMessage<ModelError>(HasSubstr("layer 'loss': a 'softmax_loss' in a gradient penalty")));
}

// 5 steps of 4 -> 3: every kernel of one step, 5 times. The product adds to the gradients of the 12 weights,
// which it reads; or another kernel does.
TEST(TrainingPasses, LayersRunStepByStep) {
  const Model model = small_model(
      "[5, 4]", "      - {name: fc, type: fully_connected, outputs: 3, bias: false, per_step: true}\n");
  const TrainingStep step = step_of(model);
  ASSERT_EQ(step.kernels.size(), 3u);  // product, weights' gradient, update
  EXPECT_EQ(step.kernels[0].repeat, 5);
  EXPECT_EQ(std::get<GemmShape>(step.kernels[0].shape).n, (Size{0, 1}));  // the samples of one step
  EXPECT_EQ(step.kernels[1].read_bytes, (Size{12 * 4, (4 + 3) * 4}));
  EXPECT_EQ(step.kernels[2].repeat, 1);
  EXPECT_EQ(step.layers[0].forward_macs, (Size{0, 5 * 12}));
  const TrainingStep added = step_of(model, {.step_gradients = GradientAccumulation::added});
  const auto sums = kernels_of(added, "accumulate");
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].repeat, 5);
  EXPECT_EQ(sums[0].read_bytes, fixed_size(2 * 12 * 4));
  EXPECT_EQ(added.kernels[1].read_bytes, (Size{0, (4 + 3) * 4}));
}

// Every step of both adds to the one gradient of 16 weights.
TEST(TrainingPasses, TiedLayersAddEveryStep) {
  const Model model = small_model(
      "[5, 4]",
      "      - {name: a, type: fully_connected, outputs: 4, bias: false, per_step: true}\n"
      "      - {name: b, type: fully_connected, outputs: 4, bias: false, per_step: true, tied_to: a}\n");
  const auto sums = kernels_of(step_of(model, {.step_gradients = GradientAccumulation::added}), "accumulate");
  ASSERT_EQ(sums.size(), 2u);
  for (const Kernel& sum : sums) {
    EXPECT_EQ(sum.repeat, 5);
    EXPECT_EQ(sum.read_bytes, fixed_size(2 * 16 * 4));
  }
}

}  // namespace
}  // namespace tbdsim
