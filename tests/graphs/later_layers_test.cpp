// Layers of the suite's later page and of MLPerf: volumes, weighted sums, dot interaction, transducers,
// spectral norm, class-conditional scales, multiplicative attention, losses of detectors; tables updated row
// by row; weight decay and running averages as operators.
#include <algorithm>

#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "tests/graphs/model_fixture.h"
#include "tests/graphs/work_fixture.h"

namespace tbdsim {
namespace {

using test::image;
using test::LayerBench;
using test::per_sample;
using test::traffic_of;
using testing::HasSubstr;
using testing::ThrowsMessage;

Size macs_of(const std::vector<Kernel>& kernels) {
  Size sum;
  for (const Kernel& kernel : kernels) sum += kernel.macs * kernel.repeat;
  return sum;
}

int count_of(const std::vector<Kernel>& kernels, std::string_view op) {
  int count = 0;
  for (const Kernel& kernel : kernels) count += kernel.op == op ? static_cast<int>(kernel.repeat) : 0;
  return count;
}

// 2 channels of 4x6x8 to 5 of 2x3x4: 24 pixels, each of 2 * 27 multiply-adds for 5 filters; 270 weights.
TEST(Conv3d, OfEveryPhase) {
  const LayerBench bench{"{type: conv3d, filters: 5, kernel: 3, stride: 2}",
                         {Shape{per_sample(1), {2, 4, 6, 8}}}};
  EXPECT_EQ(bench.output.dims, (std::vector<std::int64_t>{5, 2, 3, 4}));
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 270);
  const auto forward = bench.forward();
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0].macs, per_sample(24 * 270));
  EXPECT_EQ(forward[0].read_bytes, (Size{270 * 4, 2 * 192 * 4}));
  EXPECT_EQ(forward[0].written_bytes, per_sample(5 * 24 * 4));
  // Two slices an image of three times the channels: the same multiply-adds.
  const auto& shape = std::get<ConvShape>(forward[0].shape);
  EXPECT_EQ(shape.images, per_sample(2));
  EXPECT_EQ(shape.channels * 9 * shape.filters * shape.out_height * shape.out_width * 2, 24 * 270);
  EXPECT_EQ(macs_of(bench.backward()), per_sample(2 * 24 * 270));
  EXPECT_THROW((void)test::make_layer("{type: conv3d, filters: 5, kernel: 2}"), SpecError);
}

// Every pixel to a cube of 8: 3 * 8 weights for each of 2 channels, 8 pixels.
TEST(ConvTranspose3d, CubesSideBySide) {
  const LayerBench bench{"{type: conv_transpose3d, filters: 3, kernel: 2, bias: true}",
                         {Shape{per_sample(1), {2, 2, 2, 2}}}};
  EXPECT_EQ(bench.output.dims, (std::vector<std::int64_t>{3, 4, 4, 4}));
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 48);
  EXPECT_EQ(bench.forward()[0].macs, per_sample(8 * 48));
  EXPECT_EQ(bench.forward().size(), 2u);  // and the bias
}

TEST(InstanceNorm, OfVolumes) {
  const LayerBench bench{"{type: instance_norm, affine: true}", {Shape{per_sample(1), {2, 3, 4, 5}}}};
  const auto shape = std::get<ImageShape>(bench.forward()[0].shape);
  EXPECT_EQ(shape.channels * shape.height * shape.width, 120);
  EXPECT_EQ(bench.layer->parameters(bench.inputs).size(), 2u);
}

// Two maps of 20 numbers (80 B): a product and a division each, a sum that reads both. Back for either map a
// division and a product, for its weight a product of two maps and its sum, for the sum of the weights the
// same with a sign and two divisions before.
TEST(WeightedAdd, OperatorsOfTwoMaps) {
  const Shape map = image(1, 4, 5);
  const LayerBench bench{"{type: weighted_add}", {map, map}};
  EXPECT_EQ(bench.layer->parameters(bench.inputs)[0].elements, 2);
  const auto forward = bench.forward();
  EXPECT_EQ(count_of(forward, "mul"), 2);
  EXPECT_EQ(count_of(forward, "div"), 2);
  EXPECT_EQ(traffic_of(forward).read.per_sample, (4 + 2) * 80);
  EXPECT_EQ(traffic_of(forward).written.per_sample, (4 + 1) * 80);
  const auto backward = bench.backward();
  EXPECT_EQ(count_of(backward, "mul"), 2 * 3);
  EXPECT_EQ(count_of(backward, "div"), 2 * 3);
  EXPECT_EQ(count_of(backward, "neg"), 2);
  EXPECT_EQ(count_of(backward, "sum"), 2 * 2);
  const LayerBench plain{"{type: weighted_add, divides: false, spare: 3}", {map, map}};
  EXPECT_EQ(plain.layer->parameters(plain.inputs)[0].elements, 5);
  EXPECT_EQ(count_of(plain.forward(), "div"), 0);
}

// 27 vectors of 128: 351 pairs and 128 are 479, padded to 480; 27 * 27 * 128 multiply-adds, and once again
// back.
TEST(DotInteraction, PairsBelowTheDiagonal) {
  const LayerBench bench{"{type: dot_interaction}", {Shape{per_sample(1), {27, 128}}}};
  EXPECT_EQ(bench.output.dims, (std::vector<std::int64_t>{480}));
  EXPECT_EQ(macs_of(bench.forward()), per_sample(27 * 27 * 128));
  EXPECT_EQ(macs_of(bench.backward()), per_sample(27 * 27 * 128));
}

TEST(Transducer, StepsJointAndLoss) {
  const LayerBench stack{"{type: stack_steps, factor: 2}", {Shape{per_sample(1), {5, 3}}}};
  EXPECT_EQ(stack.output.dims, (std::vector<std::int64_t>{3, 6}));
  const LayerBench joint{"{type: joint_sum}", {Shape{per_sample(1), {3, 8}}, Shape{per_sample(1), {2, 8}}}};
  EXPECT_EQ(joint.output.dims, (std::vector<std::int64_t>{3, 2, 8}));
  EXPECT_EQ(joint.forward()[0].read_bytes, per_sample((24 + 16) * 4));
  EXPECT_EQ(joint.forward()[0].written_bytes, per_sample(48 * 4));
  EXPECT_EQ(joint.backward().size(), 2u);  // a sum over labels, one over frames
  const LayerBench loss{"{type: transducer_loss}", {joint.output}};
  EXPECT_TRUE(loss.layer->is_loss());
  EXPECT_EQ(loss.forward().size(), 2u);
  const auto layer = test::make_layer("{type: joint_sum}");
  const std::vector<Shape> other{Shape{per_sample(1), {3, 8}}, Shape{per_sample(1), {2, 7}}};
  EXPECT_THROW((void)layer->output_shape(other), ShapeMismatch);
}

// Weights of 4 * 9 x 6 behind 4 channels: two products with a vector, whatever the batch.
TEST(SpectralNorm, WorkOfTheWeightsOnly) {
  const LayerBench bench{"{type: spectral_norm, filters: 6, kernel: 3}", {image(4, 5, 5)}};
  EXPECT_EQ(bench.output, bench.inputs[0]);
  EXPECT_EQ(macs_of(bench.forward()), fixed_size(2 * 36 * 6));
  EXPECT_FALSE(bench.layer->parameters(bench.inputs)[0].trained);
  for (const Kernel& kernel : bench.forward()) EXPECT_EQ(kernel.read_bytes.per_sample, 0);
}

TEST(ClassScale, RowsOfTwoTables) {
  const LayerBench bench{"{type: class_scale, classes: 10}", {image(4, 5, 5)}};
  const auto parameters = bench.layer->parameters(bench.inputs);
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].elements, 40);
  EXPECT_EQ(parameters[0].gradient_rows, per_sample(4));
  EXPECT_EQ(count_of(bench.forward(), "embedding"), 2);
}

// 7 queries of 8 features on 5 positions: 7 * 5 * 8 multiply-adds, twice back.
TEST(DotScore, ProductsAndScale) {
  const std::vector<Shape> inputs{Shape{per_sample(1), {7, 8}}, Shape{per_sample(1), {5, 8}}};
  const LayerBench bench{"{type: dot_score}", inputs};
  EXPECT_EQ(bench.output.dims, (std::vector<std::int64_t>{7, 5}));
  EXPECT_EQ(macs_of(bench.forward()), per_sample(280));
  EXPECT_EQ(macs_of(bench.backward()), per_sample(560));
  EXPECT_EQ(bench.layer->parameters(inputs).size(), 1u);
  EXPECT_TRUE(test::make_layer("{type: dot_score, scale: false}")->parameters(inputs).empty());
}

TEST(Losses, OfDetectors) {
  const Shape scores{per_sample(1), {81, 100}};
  const LayerBench hard{"{type: hard_negative_loss}", {scores}};
  EXPECT_TRUE(hard.layer->is_loss());
  EXPECT_EQ(count_of(hard.forward(), "radix_sort"), 2 * 2 * 4);  // two sorts of four passes
  const LayerBench composite{"{type: focal_loss}", {scores}};
  const LayerBench fused{"{type: focal_loss, form: fused}", {scores}};
  EXPECT_GT(composite.forward().size(), 5u);
  EXPECT_EQ(fused.forward().size(), 1u);
  EXPECT_LT(traffic_of(fused.forward()).read.per_sample, traffic_of(composite.forward()).read.per_sample);
  const LayerBench given{"{type: smooth_l1_loss, targets: given}", {scores}};
  EXPECT_TRUE(given.layer->is_loss());
  const LayerBench dense{"{type: softmax_loss, targets: dense}", {scores}};
  EXPECT_EQ(dense.forward()[0].read_bytes, per_sample(2 * 8100 * 4));
}

// 8,100 scores. apex's kernel computes 33 operations for each; the gradients of its images are joined by one
// more pass. torchvision computes the cross entropy and the power in fp32: in half precision its kernels move
// fewer bytes than in fp32, but more than half as many.
TEST(FocalLoss, Forms) {
  const Shape scores{per_sample(1), {81, 100}};
  const LayerBench fused{"{type: focal_loss, form: fused}", {scores}};
  EXPECT_EQ(fused.forward()[0].flops, per_sample(33 * 8100));
  LayerBench images{"{type: focal_loss, form: fused_images}", {scores}};
  EXPECT_EQ(images.backward().size(), fused.backward().size() + 1);
  images.input_gradient = false;
  EXPECT_TRUE(images.backward().empty());

  const LayerBench fp32{"{type: focal_loss, form: torchvision}", {scores}};
  LayerBench half{"{type: focal_loss, form: torchvision}", {scores}};
  half.precision = test::kFp16;
  EXPECT_EQ(count_of(fp32.forward(), "cast"), 0);
  EXPECT_EQ(count_of(half.forward(), "cast"), 3);
  const auto read = [](const LayerBench& bench) { return traffic_of(bench.forward()).read.per_sample; };
  EXPECT_LT(read(half), read(fp32));
  EXPECT_GT(2 * read(half), read(fp32));
}

// Three anchors of a sample, each with four offsets: the difference reads offsets and fp32 targets.
TEST(AnchorBoxLoss, ReadsRowsOfFour) {
  LayerBench bench{"{type: anchor_box_loss}", {Shape{per_sample(3), {4}}}};
  bench.precision = test::kFp16;
  EXPECT_TRUE(bench.layer->is_loss());
  const std::vector<Kernel> kernels = bench.forward();
  EXPECT_EQ(kernels[kernels.size() - 2].read_bytes, per_sample(3 * 4 * (2 + 4)));
  const std::vector<Shape> pairs{Shape{per_sample(3), {2}}};
  EXPECT_THROW((void)bench.layer->output_shape(pairs), ShapeMismatch);
}

// One bias instead of two: 3 * 4 numbers fewer.
TEST(Gru, OneBias) {
  const std::vector<Shape> inputs{Shape{per_sample(1), {2, 5}}};
  const auto total = [&](const char* keys) {
    std::int64_t sum = 0;
    for (const ParameterTensor& t : test::make_layer(keys)->parameters(inputs)) sum += t.elements;
    return sum;
  };
  EXPECT_EQ(total("{type: gru, hidden: 4}") - total("{type: gru, hidden: 4, biases: 1}"), 12);
}

constexpr const char* kTable =
    "      - {name: table, type: embedding, words: 1000, outputs: 8, sparse: true}\n"
    "      - {name: fc, type: fully_connected, outputs: 1}\n"
    "      - {name: loss, type: logistic_loss}\n";

// Three words of a sample: 24 numbers of the table are read and written, and of the gradient read.
TEST(SparseTable, OnlyRowsLookedUpAreUpdated) {
  const TrainingStep step = test::step_of(test::small_model("[3]", kTable, "sgd"));
  for (const Kernel& kernel : step.kernels) {
    if (kernel.phase != Phase::update || kernel.layer != 0) continue;
    EXPECT_EQ(kernel.read_bytes, per_sample(24 * (4 + 4)));
    EXPECT_EQ(kernel.written_bytes, per_sample(24 * 4));
  }
  const auto table = std::find_if(step.gradients.begin(), step.gradients.end(),
                                  [](const ParameterGradient& gradient) { return gradient.layer == 0; });
  ASSERT_NE(table, step.gradients.end());
  EXPECT_EQ(table->elements, per_sample(24));  // what GPUs exchange
}

// PyTorch's loop first multiplies the 24 numbers of the gradient by the learning rate, in a tensor of their
// own.
TEST(SparseTable, ALoopScalesTheRowsByThemselves) {
  const TrainingStep step =
      test::step_of(test::small_model("[3]", kTable, "sgd"), {.update = UpdateKernels::for_loop});
  std::vector<Kernel> scaled;
  for (const Kernel& kernel : test::kernels_of(step, "mul")) {
    if (kernel.phase == Phase::update) scaled.push_back(kernel);
  }
  ASSERT_EQ(scaled.size(), 1u);
  EXPECT_EQ(scaled[0].read_bytes, per_sample(24 * 4));
  EXPECT_EQ(scaled[0].written_bytes, per_sample(24 * 4));
}

// Results that are fetched and targets that are fed have no layer behind them.
TEST(HostCopy, TargetsAreReadByALoss) {
  EXPECT_FALSE(test::make_layer("{type: host_copy, to: device}")->is_loss());
  EXPECT_TRUE(test::make_layer("{type: host_copy, to: device, targets: true}")->is_loss());
  EXPECT_TRUE(test::make_layer("{type: host_copy, to: host}")->is_loss());
}

TEST(SparseTable, NeedsAnOptimizerThatHasSuchAForm) {
  EXPECT_THAT(
      [] { (void)test::small_model("[3]", kTable, "adam"); },
      ThrowsMessage<ModelError>(HasSubstr("layer 'table': its gradient is sparse, but the optimizer 'adam' "
                                          "of variant 'v1' updates all rows; expected one of none, sgd")));
  EXPECT_THROW(
      (void)test::make_layer("{type: embedding, words: 9, outputs: 2, sparse: true, dense_gradient: true}"),
      SpecError);
}

std::string with_key(const std::string& key) {
  std::string text = test::model_text("[4]", "      - {name: fc, type: fully_connected, outputs: 3}\n");
  text.replace(text.find("optimizer: sgd"), 14, "optimizer: sgd, " + key);
  return text;
}

// 12 weights and 3 biases: three operators for either tensor, and as many numbers more on the GPU.
TEST(RunningAverage, OfEveryTensor) {
  const TrainingStep step = test::step_of(test::model_from(with_key("average: true")));
  EXPECT_EQ(test::kernels_of(step, "average").size(), 6u);
  Size kept;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role == TensorRole::dynamic) kept += tensor.bytes;
  }
  EXPECT_EQ(kept, fixed_size(15 * 4));
}

// In half precision a layer in single precision reads and writes 4 B a number; what reads it casts, and casts
// the gradient back. In fp32 nothing differs.
TEST(SinglePrecisionLayer, IsCastByItsReaders) {
  const std::string layers =
      "      - {name: a, type: fully_connected, outputs: 8}\n"
      "      - {name: b, type: tanh, fp32: true}\n"
      "      - {name: c, type: fully_connected, outputs: 1}\n"
      "      - {name: loss, type: logistic_loss}\n";
  const Model model = test::small_model("[4]", layers);
  const Precision& amp = kPrecisions[5];
  ASSERT_EQ(amp.name, "amp");
  const auto casts_of_maps = [](const TrainingStep& step) {
    std::vector<Size> read;
    for (const Kernel& kernel : test::kernels_of(step, "cast")) {
      if (kernel.layer == 2 && kernel.read_bytes.per_sample > 0) read.push_back(kernel.read_bytes);
    }
    return read;
  };
  const TrainingStep half = test::step_of(model, {}, amp);
  EXPECT_THAT(casts_of_maps(half), testing::ElementsAre(per_sample(8 * 4), per_sample(8 * 2)));
  EXPECT_EQ(test::kernels_of(half, "tanh")[0].written_bytes, per_sample(8 * 4));
  const TrainingStep full = test::step_of(model);
  EXPECT_THAT(casts_of_maps(full), testing::IsEmpty());
}

// torch.autocast casts for group norms: 2 channels of 3 x 3 pixels, written in 4 B numbers, which the next
// layer casts. Pure bf16 has no autocast.
TEST(SinglePrecisionLayer, IsAGroupNormUnderAutocast) {
  const Model model = test::small_model("[2, 3, 3]",
                                        "      - {name: norm, type: group_norm, groups: 2}\n"
                                        "      - {name: fc, type: fully_connected, outputs: 1}\n"
                                        "      - {name: loss, type: logistic_loss}\n");
  const auto written = [&](const Lowering& lowering, const Precision& precision) {
    return test::kernels_of(test::step_of(model, lowering, precision), "group_norm")[0].written_bytes;
  };
  const Lowering casts{.group_norm_in_fp32 = true};
  EXPECT_EQ(written(casts, kPrecisions[5]), per_sample(18 * 4));
  EXPECT_EQ(written({}, kPrecisions[5]), per_sample(18 * 2));
  EXPECT_EQ(written(casts, kPrecisions[6]), per_sample(18 * 2));
}

// The 12 weights only: their squares' sum, its gradient, and a sum with the other one.
TEST(GraphDecay, OfWeightsNotBiases) {
  const TrainingStep step = test::step_of(test::model_from(with_key("graph_decay: true")));
  EXPECT_EQ(test::kernels_of(step, "l2_loss").size(), 1u);
  EXPECT_EQ(test::kernels_of(step, "l2_gradient")[0].read_bytes, fixed_size(48));
}

}  // namespace
}  // namespace tbdsim
