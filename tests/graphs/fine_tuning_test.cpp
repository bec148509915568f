// Frozen weights, low-rank adapters and gradients of several batches: what is computed and kept, by hand.
#include "graphs/fine_tuning.h"

#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using test::kernels_of;
using test::program;
using test::step_of;
using testing::HasSubstr;
using testing::ThrowsMessage;

// 16 weights, twice 16 and 4, 12.
constexpr const char* kTwoBlocks =
    "title: T\nsample: image\nvariants:\n  v: {description: d, source: s, optimizer: adam}\n"
    "blocks:\n"
    "  unit: {layers: [{name: \"$name/attention\", type: fully_connected, outputs: 4}]}\n"
    "graphs:\n"
    "  main:\n"
    "    inputs: {data: [4]}\n"
    "    outputs: [head]\n"
    "    layers:\n"
    "      - {name: embedding, type: fully_connected, outputs: 4, bias: false}\n"
    "      - {block: unit, name: \"layer$i\", repeat: {index: i, from: 0, to: 1}}\n"
    "      - {name: head, type: fully_connected, outputs: 3, bias: false}\n"
    "training: [{graph: main}]\n";

Model two_blocks() { return test::model_from(kTwoBlocks); }

std::int64_t bytes_of(const TrainingStep& step, TensorRole role) {
  Size sum;
  for (const Tensor& tensor : step.tensors) sum += tensor.role == role ? tensor.bytes : Size{};
  EXPECT_EQ(sum.per_sample, 0);
  return sum.fixed;
}

int count(const TrainingStep& step, Phase phase, std::string_view op) {
  int number = 0;
  for (const Kernel& kernel : step.kernels) number += kernel.phase == phase && kernel.op == op ? 1 : 0;
  return number;
}

std::int64_t parameters(const TrainingStep& step, std::int64_t LayerSummary::*sort) {
  std::int64_t sum = 0;
  for (const LayerSummary& layer : step.layers) sum += layer.*sort;
  return sum;
}

// Adapters of rank 2: A has 2 x 4 weights, B 4 x 2, in each of two blocks. Backward: the head and the second
// block's product by their inputs; of its adapter both products by both; of the first block's adapter B by
// both and A by its weights, for nothing before it is trained.
TEST(FineTuning, TrainsAdaptersBesideFrozenProducts) {
  const TrainingStep step = step_of(fine_tuned(two_blocks(), {.rank = 2}));
  EXPECT_EQ(parameters(step, &LayerSummary::trained_parameters), 2 * (8 + 8));
  EXPECT_EQ(parameters(step, &LayerSummary::frozen_parameters), 16 + 2 * (16 + 4) + 12);
  EXPECT_EQ(count(step, Phase::forward, "matmul"), 2 + 2 * 3);
  EXPECT_EQ(count(step, Phase::backward_weights, "matmul"), 4);
  EXPECT_EQ(count(step, Phase::backward_data, "matmul"), 1 + 3 + 1);
  EXPECT_EQ(count(step, Phase::backward_weights, "bias_gradient"), 0);
  EXPECT_EQ(bytes_of(step, TensorRole::weights), 4 * (32 + 68));
  EXPECT_EQ(bytes_of(step, TensorRole::weight_gradients), 4 * 32);
  EXPECT_EQ(bytes_of(step, TensorRole::dynamic), 8 * 32);
}

// Names of what an adapted product becomes, and which layer it belongs to.
TEST(FineTuning, KeepsTheProductsName) {
  const Model model = fine_tuned(two_blocks(), {.rank = 2, .adapted = {"layer1"}});
  std::vector<std::string> names;
  for (const GraphLayer& layer : model.graphs.at("main").layers) {
    names.push_back(layer.spec.name);
    EXPECT_EQ(layer.spec.adapts,
              layer.spec.name.find("lora") == std::string::npos ? "" : "layer1/attention/base");
  }
  EXPECT_THAT(names, testing::ElementsAre("embedding", "layer0/attention", "layer1/attention/base",
                                          "layer1/attention/lora_A", "layer1/attention/lora_B",
                                          "layer1/attention/lora", "layer1/attention", "head"));
}

// Layers before the first trained one have no backward pass at all.
TEST(FineTuning, FreezesLayersByPartsOfTheirNames) {
  const TrainingStep step = step_of(fine_tuned(two_blocks(), {.frozen = {"embedding", "layer0"}}));
  EXPECT_EQ(parameters(step, &LayerSummary::trained_parameters), 20 + 12);
  EXPECT_EQ(count(step, Phase::backward_data, "matmul"), 1);  // the head's
  EXPECT_EQ(count(step, Phase::backward_weights, "matmul"), 2);
}

TEST(FineTuning, NamesWhatIsNotThere) {
  EXPECT_THAT([] { (void)fine_tuned(two_blocks(), {.rank = 2, .adapted = {"atention"}}); },
              ThrowsMessage<UsageError>(HasSubstr("did you mean 'attention'?")));
  EXPECT_THAT([] { (void)fine_tuned(two_blocks(), {.frozen = {"all"}}); },
              ThrowsMessage<UsageError>(HasSubstr("has 'all' in its name")));
  EXPECT_THAT(
      [] {
        (void)fine_tuned(two_blocks(), {.frozen = {"embedding", "attention", "head"}});
      },
      ThrowsMessage<UsageError>(HasSubstr("is left to train")));
}

// Four batches: products four times, one update; each gradient after the first is added by a kernel, or by
// the product itself to zeros. Gradients live from the first kernel on.
TEST(Accumulation, AddsUpGradientsOfBatches) {
  Model model =
      test::small_model("[4]", "      - {name: fc, type: fully_connected, outputs: 3, bias: false}\n");
  model.training.front().batches = 4;
  Lowering lowering{.weight_gradients = GradientStorage::until_update};
  lowering.step_gradients = GradientAccumulation::added;
  const TrainingStep step = step_of(model, lowering);
  EXPECT_EQ(step.batches, 4);
  EXPECT_THAT(program(step), testing::ElementsAre("matmul forward", "matmul backward_weights",
                                                  "accumulate backward_weights", "sgd update"));
  const std::int64_t repeats[] = {4, 4, 3, 1};
  for (std::size_t k = 0; k < step.kernels.size(); ++k) EXPECT_EQ(step.kernels[k].repeat, repeats[k]);
  EXPECT_EQ(step.layers[0].forward_macs, (Size{0, 12}));
  EXPECT_EQ(step.layers[0].training_macs, (Size{0, 4 * 2 * 12}));
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role != TensorRole::weight_gradients) continue;
    EXPECT_EQ(tensor.first_use, 0);
    EXPECT_EQ(tensor.last_use, 3);
  }

  lowering.step_gradients = GradientAccumulation::in_place;
  const TrainingStep in_place = step_of(model, lowering);
  EXPECT_EQ(kernels_of(in_place, "fill").at(0).repeat, 1);
  const Kernel product = kernels_of(in_place, "matmul").at(1);
  EXPECT_EQ(product.repeat, 4);
  EXPECT_EQ(product.read_bytes, (Size{4 * 12, 4 * (4 + 3)}));  // the gradient so far, x and dy
}

}  // namespace
}  // namespace tbdsim
