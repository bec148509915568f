// One iteration of small networks: the kernels in order and the tensors with their lifetimes, all by hand.
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
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

struct Life {
  TensorRole role;
  int layer;
  Size bytes;
  int first, last;
  friend bool operator==(const Life&, const Life&) = default;
};
void PrintTo(const Life& life, std::ostream* out) {
  *out << "role " << static_cast<int>(life.role) << " layer " << life.layer << " bytes ";
  PrintTo(life.bytes, out);
  *out << " kernels " << life.first << "-" << life.last;
}

std::vector<Life> lives(const TrainingStep& step) {
  std::vector<Life> all;
  for (const Tensor& t : step.tensors) all.push_back({t.role, t.layer, t.bytes, t.first_use, t.last_use});
  return all;
}

// Three layers: 4 inputs -> fully connected, 3 outputs -> relu -> softmax. 12 weights (48 B); a row of the
// data is 16 B, every other tensor 12 B.
constexpr const char* kThreeLayers =
    "      - {name: fc, type: fully_connected, outputs: 3, bias: false}\n"
    "      - {name: relu, type: relu}\n"
    "      - {name: softmax, type: softmax_loss}\n";

TEST(TrainingStep, KernelsInTheOrderTheyRun) {
  const TrainingStep step = step_of(small_model("[4]", kThreeLayers, "momentum"));
  EXPECT_THAT(program(step), ElementsAre("matmul forward", "relu forward", "softmax_loss forward",
                                         "softmax_loss backward_data", "relu backward_data",
                                         "matmul backward_weights", "momentum update"));
  EXPECT_EQ(step.kernels[3].layer, 2);
  EXPECT_EQ(step.kernels[6].layer, 0);
  EXPECT_EQ(step.sample, "image");
}

// Kernels: 0 fc, 1 relu, 2 softmax forward; 3 softmax, 4 relu backward, 5 fc's weights' gradient; 6 update.
TEST(TrainingStep, LifetimesOfThreeLayers) {
  const TrainingStep step = step_of(small_model("[4]", kThreeLayers, "momentum"));
  using enum TensorRole;
  EXPECT_THAT(lives(step),
              UnorderedElementsAre(
                  Life{feature_map, -1, {0, 16}, 0, 5},  // data: fc's weights' gradient reads it again
                  Life{feature_map, 0, {0, 12}, 0, 1},   // relu keeps its output only
                  Life{feature_map, 1, {0, 12}, 1, 4},   // until relu's backward pass
                  Life{feature_map, 2, {0, 12}, 2, 3},   // probabilities, for softmax's own gradient
                  Life{gradient_map, 1, {0, 12}, 3, 4},  // written by softmax, read by relu
                  Life{gradient_map, 0, {0, 12}, 4, 5},  // written by relu, read by fc
                  Life{weights, 0, {48, 0}, 0, 6}, Life{weight_gradients, 0, {48, 0}, 0, 6},
                  Life{dynamic, 0, {48, 0}, 0, 6}));  // momentum: one word for each weight
}

// MXNet's rule: relu's input is read again in kernel 4.
TEST(TrainingStep, ReluThatKeepsItsInput) {
  const TrainingStep step =
      step_of(small_model("[4]", kThreeLayers), {.relu_keeps = ReluKeeps::input_and_output});
  EXPECT_THAT(lives(step), testing::Contains(Life{TensorRole::feature_map, 0, {0, 12}, 0, 4}));
}

// In place relu writes over fc's output: one tensor from kernel 0 to relu's backward pass.
TEST(TrainingStep, ReluInPlace) {
  const TrainingStep step = step_of(small_model("[4]", kThreeLayers), {.relu_in_place = true});
  EXPECT_THAT(lives(step), testing::Contains(Life{TensorRole::feature_map, 0, {0, 12}, 0, 4}));
  for (const Life& life : lives(step)) EXPECT_FALSE(life.role == TensorRole::feature_map && life.layer == 1);
}

// Not in place where another layer still reads the input (here the addition), or where the layer before keeps
// its own output (a max pool).
TEST(TrainingStep, ReluInPlaceOnlyWhereNobodyElseReads) {
  const auto relu_has_its_own = [](const std::string& layers) {
    const TrainingStep step = step_of(small_model("[2, 4, 4]", layers), {.relu_in_place = true});
    return std::any_of(step.tensors.begin(), step.tensors.end(), [&](const Tensor& tensor) {
      return tensor.role == TensorRole::feature_map && tensor.layer >= 0 &&
             step.layers[static_cast<std::size_t>(tensor.layer)].name == "relu";
    });
  };
  const std::string conv = "      - {name: conv, type: conv2d, filters: 2, kernel: 1, padding: 0}\n";
  EXPECT_FALSE(relu_has_its_own(conv + "      - {name: relu, type: relu}\n"));
  EXPECT_TRUE(relu_has_its_own(conv + "      - {name: relu, type: relu}\n"
                                      "      - {name: sum, type: add, from: [relu, conv]}\n"));
  EXPECT_TRUE(relu_has_its_own(conv + "      - {name: pool, type: max_pool, kernel: 2, padding: 0}\n"
                                      "      - {name: relu, type: relu}\n"));
}

// Transient weight gradients are born with the kernel that writes them, kernel 5. Plain SGD applies each at
// once; with momentum they wait for the update, kernel 6.
TEST(TrainingStep, TransientWeightGradients) {
  const TrainingStep step =
      step_of(small_model("[4]", kThreeLayers), {.weight_gradients = GradientStorage::transient});
  EXPECT_THAT(lives(step), testing::Contains(Life{TensorRole::weight_gradients, 0, {48, 0}, 5, 5}));
}

// b, which goes back first, writes the gradient of the weight it shares with a: kernel 2; a adds to it: 4.
TEST(TrainingStep, TransientGradientsOfTiedWeights) {
  const TrainingStep step =
      step_of(small_model("[4]",
                          "      - {name: a, type: fully_connected, outputs: 4, bias: false}\n"
                          "      - {name: b, type: fully_connected, outputs: 4, bias: false, tied_to: a}\n"),
              {.weight_gradients = GradientStorage::transient});
  EXPECT_THAT(program(step), ElementsAre("matmul forward", "matmul forward", "matmul backward_weights",
                                         "matmul backward_data", "matmul backward_weights", "sgd update"));
  EXPECT_THAT(lives(step), testing::Contains(Life{TensorRole::weight_gradients, 0, {64, 0}, 2, 4}));
}

// A block y = conv(x) + x behind a trained layer: the gradient of x arrives from the convolution and through
// the addition, and is summed: one addition for each of the 2*4*4 elements, two reads and a write of 128 B.
// Kernels: 0 stem, 1 conv, 2 add, 3 conv dW, 4 conv dx, 5 the sum, 6 stem dW, 7 and 8 updates.
constexpr const char* kResidual =
    "      - {name: stem, type: conv2d, filters: 2, kernel: 1, padding: 0}\n"
    "      - {name: conv, type: conv2d, filters: 2, kernel: 1, padding: 0}\n"
    "      - {name: sum, type: add, from: [conv, stem]}\n";

TEST(TrainingStep, ResidualJoinSumsTwoGradients) {
  const TrainingStep step = step_of(small_model("[3, 4, 4]", kResidual));
  EXPECT_THAT(program(step),
              ElementsAre("conv forward", "conv forward", "add forward", "conv backward_weights",
                          "conv backward_data", "gradient_sum backward_data", "conv backward_weights",
                          "sgd update", "sgd update"));
  const Kernel& sum = step.kernels[5];
  EXPECT_EQ(sum.layer, 0);
  EXPECT_EQ(sum.flops, (Size{0, 32}));
  EXPECT_EQ(sum.read_bytes, (Size{0, 256}));
  EXPECT_EQ(sum.written_bytes, (Size{0, 128}));
}

std::vector<Life> gradient_maps(const TrainingStep& step) {
  std::vector<Life> gradients;
  for (const Life& life : lives(step)) {
    if (life.role == TensorRole::gradient_map) gradients.push_back(life);
  }
  return gradients;
}

// The addition is the last layer: its gradient is the loss's own and serves both branches, so the only
// gradient map is what conv hands to stem, summed in place.
TEST(TrainingStep, ResidualJoinKeepsOneGradientMap) {
  EXPECT_THAT(gradient_maps(step_of(small_model("[3, 4, 4]", kResidual))),
              ElementsAre(Life{TensorRole::gradient_map, 0, {0, 128}, 3, 6}));
}

// With a relu behind the addition (kernel 3 forward, 4 backward) its gradient is a map: written in 4, read by
// conv in 5 and 6, and the shortcut's share of the sum in 7. conv's share, summed in place, lives from 5 to
// stem's dW in 8.
TEST(TrainingStep, GradientOfAnAdditionServesBothBranches) {
  const TrainingStep step =
      step_of(small_model("[3, 4, 4]", std::string(kResidual) + "      - {name: end, type: relu}\n"));
  EXPECT_EQ(step.kernels[7].op, "gradient_sum");
  EXPECT_THAT(gradient_maps(step), UnorderedElementsAre(Life{TensorRole::gradient_map, 2, {0, 128}, 4, 7},
                                                        Life{TensorRole::gradient_map, 0, {0, 128}, 5, 8}));
}

// Three readers: three gradients, two additions an element. b's gradient lives from b's backward kernel, 4,
// to the sum, 6; a's, in which the sum is made, from 5 to stem's dW, 7; the addition's is the loss's own.
TEST(TrainingStep, ThreeReadersOfOneTensor) {
  const TrainingStep step =
      step_of(small_model("[3, 4, 4]",
                          "      - {name: stem, type: conv2d, filters: 2, kernel: 1, padding: 0}\n"
                          "      - {name: a, type: relu}\n"
                          "      - {name: b, type: relu, from: stem}\n"
                          "      - {name: sum, type: add, from: [a, b, stem]}\n"));
  const auto sums = kernels_of(step, "gradient_sum");
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].flops, (Size{0, 64}));
  EXPECT_EQ(sums[0].read_bytes, (Size{0, 3 * 128}));
  EXPECT_THAT(gradient_maps(step), UnorderedElementsAre(Life{TensorRole::gradient_map, 0, {0, 128}, 4, 6},
                                                        Life{TensorRole::gradient_map, 0, {0, 128}, 5, 7}));
}

// The same where kernels add to the sum themselves: the second and the third read it, 128 bytes each.
TEST(TrainingStep, GradientsThatAddInPlace) {
  const Model model = small_model("[3, 4, 4]",
                                  "      - {name: stem, type: conv2d, filters: 2, kernel: 1, padding: 0}\n"
                                  "      - {name: a, type: relu}\n"
                                  "      - {name: b, type: relu, from: stem}\n"
                                  "      - {name: sum, type: add, from: [a, b, stem]}\n");
  const TrainingStep step = step_of(model, {.branch_gradients = GradientAccumulation::in_place});
  const auto sums = kernels_of(step, "gradient_sum");
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].flops, (Size{0, 64}));
  EXPECT_EQ(sums[0].read_bytes, (Size{0, 2 * 128}));
  EXPECT_EQ(sums[0].written_bytes, (Size{}));
}

TEST(TrainingStep, NoGradientWorkBelowTheFirstTrainedLayer) {
  const TrainingStep step = step_of(
      small_model("[3, 4, 4]",
                  "      - {name: conv1, type: conv2d, filters: 2, kernel: 1, padding: 0, frozen: true}\n"
                  "      - {name: bn1, type: batch_norm, frozen: true}\n"
                  "      - {name: relu1, type: relu}\n"
                  "      - {name: conv2, type: conv2d, filters: 2, kernel: 1, padding: 0}\n"));
  EXPECT_THAT(program(step), ElementsAre("conv forward", "batch_norm forward", "relu forward", "conv forward",
                                         "conv backward_weights", "sgd update"));
  EXPECT_EQ(step.layers[0].frozen_parameters, 6);
  EXPECT_EQ(step.layers[0].trained_parameters, 0);
  EXPECT_EQ(step.layers[1].frozen_parameters, 4);
  EXPECT_EQ(step.layers[1].statistics, 4);
  // relu1's output is the only map kept: conv2's weights' gradient reads it, in kernel 4.
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role == TensorRole::feature_map && tensor.layer < 2) {
      EXPECT_LT(tensor.last_use, 4);
    }
  }
}

// A dropout that needs no gradient keeps no mask beyond the forward pass.
TEST(TrainingStep, NoMaskWithoutAGradient) {
  const TrainingStep step =
      step_of(small_model("[3, 4, 4]",
                          "      - {name: drop, type: dropout, keep: 0.5}\n"
                          "      - {name: conv, type: conv2d, filters: 2, kernel: 1, padding: 0}\n"));
  for (const Tensor& tensor : step.tensors) {
    if (tensor.layer == 0) {
      EXPECT_EQ(tensor.bytes, (Size{0, 3 * 16 * 4}));  // its output, not a byte an element
    }
  }
}

// Forward multiply-adds 2*16 x 3 weights = 96 of conv (first layer: no input gradient, so twice that in
// training) and 32 x 10 = 320 of fc (three times).
TEST(TrainingStep, MultiplyAddsOfEachLayer) {
  const TrainingStep step =
      step_of(small_model("[3, 4, 4]",
                          "      - {name: conv, type: conv2d, filters: 2, kernel: 1, padding: 0}\n"
                          "      - {name: fc, type: fully_connected, outputs: 10}\n"));
  EXPECT_EQ(step.layers[0].forward_macs, (Size{0, 96}));
  EXPECT_EQ(step.layers[0].training_macs, (Size{0, 192}));
  EXPECT_EQ(step.layers[1].forward_macs, (Size{0, 320}));
  EXPECT_EQ(step.layers[1].training_macs, (Size{0, 960}));
  EXPECT_EQ(step.layers[1].trained_parameters, 330);
}

// A further copy of all 12 weights beside one word of momentum each: 12 * (4 + 4) B. After the update a
// kernel copies them.
TEST(TrainingStep, ParameterCopiesAreDynamic) {
  const TrainingStep step = step_of(small_model("[4]", kThreeLayers, "momentum"), {.parameter_copies = 1});
  EXPECT_THAT(lives(step), testing::Contains(Life{TensorRole::dynamic, 0, {96, 0}, 0, 7}));
  EXPECT_EQ(kernels_of(step, "copy").size(), 1u);
}

// fp16 with fp32 variables: conv's 6 weights are cast at the start (4 B read, 2 B written each) and their
// gradients cast back at the end; norms stay fp32. Variable and copy are 6 B a weight. The loss is scaled:
// all 10 gradients (gamma's and beta's 2 each) are divided by a kernel of their own before the update, which
// reads weight and gradient, 4 B each.
TEST(TrainingStep, MixedPrecision) {
  const Model model = small_model("[3, 4, 4]",
                                  "      - {name: conv, type: conv2d, filters: 2, kernel: 1, padding: 0}\n"
                                  "      - {name: bn, type: batch_norm}\n");
  const TrainingStep step = step_of(model, {}, test::kFp16);
  EXPECT_EQ(step.kernels[0].op, "cast");
  const auto casts = kernels_of(step, "cast");
  ASSERT_EQ(casts.size(), 2u);
  EXPECT_EQ(casts[0].read_bytes, fixed_size(24));
  EXPECT_EQ(casts[0].written_bytes, fixed_size(12));
  EXPECT_EQ(casts[1].read_bytes, fixed_size(12));
  EXPECT_EQ(casts[1].written_bytes, fixed_size(24));
  const auto unscaled = kernels_of(step, "unscale");
  ASSERT_EQ(unscaled.size(), 3u);
  EXPECT_EQ(unscaled[0].read_bytes + unscaled[1].read_bytes + unscaled[2].read_bytes, fixed_size(10 * 4));
  const auto updates = kernels_of(step, "sgd");
  EXPECT_EQ(updates[0].read_bytes, fixed_size(6 * (4 + 4)));
  EXPECT_EQ(updates[1].read_bytes, fixed_size(2 * (4 + 4)));  // gamma
  const int last = static_cast<int>(step.kernels.size()) - 1;
  EXPECT_THAT(lives(step), testing::IsSupersetOf({Life{TensorRole::weights, 0, {36, 0}, 0, last},
                                                  Life{TensorRole::weight_gradients, 0, {24, 0}, 0, last},
                                                  Life{TensorRole::weights, 1, {8, 0}, 0, last},
                                                  Life{TensorRole::weight_gradients, 1, {8, 0}, 0, last}}));
}

// bf16 has fp32's range: the loss is not scaled. Fused updates come with one kernel for all gradients.
TEST(TrainingStep, OnlyFp16ScalesTheLoss) {
  const Model model = small_model("[4]", kThreeLayers);
  EXPECT_TRUE(kernels_of(step_of(model, {}, kPrecisions[4]), "unscale").empty());
  const TrainingStep fused = step_of(model, {.update = UpdateKernels::fused}, test::kFp16);
  EXPECT_EQ(kernels_of(fused, "unscale").size(), 1u);
}

// Five forward passes and one step, as A3C has them: 12 multiply-adds in a forward pass; six of them and the
// weights' gradient in an iteration.
TEST(TrainingStep, PassesAndRepeats) {
  const Model model = test::model_from(test::model_text(
      "[4]", kThreeLayers, "sgd", "[{graph: main, backward: none, repeat: 5}, {graph: main}]"));
  const TrainingStep step = step_of(model);
  EXPECT_EQ(step.kernels.size(), 3u + 7u);
  EXPECT_EQ(step.kernels[0].repeat, 5);
  EXPECT_EQ(step.kernels[3].repeat, 1);
  EXPECT_EQ(step.layers[0].forward_macs, (Size{0, 12}));
  EXPECT_EQ(step.layers[0].training_macs, (Size{0, 7 * 12}));
  // Forward-only passes keep nothing: fc's output dies with relu's kernel, the next.
  EXPECT_THAT(lives(step), testing::Contains(Life{TensorRole::feature_map, 0, {0, 12}, 0, 1}));
}

// 2e18 elements fit 64 bits (9.2e18) and so do their 8e18 bytes in fp32; the norm reads them twice.
TEST(TrainingStep, SizesBeyond64BitsAreAnError) {
  const Model model = small_model("[2, 1000000000, 1000000000]", "      - {name: bn, type: batch_norm}\n");
  EXPECT_THAT([&] { (void)step_of(model); },
              ThrowsMessage<ModelError>(
                  HasSubstr("model.yaml:10:9: layer 'bn': a size beyond 64 bits; expected a smaller layer")));
}

// 1000 runs of 2001 layers that need no kernel, only memory.
TEST(TrainingStepErrors, MoreLayersThanMemoryHolds) {
  std::string layers;
  for (int i = 0; i < 2001; ++i)
    layers += "      - {name: r" + std::to_string(i) + ", type: reshape, dims: [4]}\n";
  std::string runs = "{graph: main, backward: none}";
  for (int i = 1; i < 1000; ++i) runs += ", {graph: main, backward: none}";
  const Model model = test::model_from(model_text("[4]", layers, "sgd", "[{runs: [" + runs + "]}]"));
  EXPECT_THAT([&] { (void)step_of(model); },
              ThrowsMessage<ModelError>(HasSubstr("more than 2000000 layers in all runs; expected fewer")));
}

TEST(TrainingStepErrors, NoKernel) {
  const Model model = test::model_from(model_text("[2, 3]", "      - {name: r, type: reshape, dims: [6]}\n",
                                                  "sgd", "[{graph: main, backward: none}]"));
  EXPECT_THAT([&] { (void)step_of(model); },
              ThrowsMessage<ModelError>(
                  testing::StrEq("model model runs no kernel; expected a layer that computes")));
}

// Four rollouts of which the last is followed by an update, as A3C has them: the gradients are added up in
// one tensor of 48 B, which lives from the start (it is persistent) to the update.
TEST(TrainingStep, GradientsAddedUpOverPassesAreOneTensor) {
  const Model model = test::model_from(test::model_text(
      "[4]", kThreeLayers, "sgd", "[{graph: main, update: false, repeat: 3}, {graph: main}]"));
  const TrainingStep step = step_of(model);
  EXPECT_EQ(step.kernels.size(), 1u + 6u + 7u);  // the gradients start from zero
  EXPECT_THAT(lives(step), testing::Contains(Life{TensorRole::weight_gradients, 0, {48, 0}, 0, 13}).Times(1));
  EXPECT_THAT(lives(step),
              testing::Not(testing::Contains(Life{TensorRole::weight_gradients, 0, {48, 0}, 0, 6})));
}

}  // namespace
}  // namespace tbdsim
