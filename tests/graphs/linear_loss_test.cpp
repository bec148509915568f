// Losses of a vocabulary with the product that makes their scores, counted by hand for a few positions.
#include "graphs/linear_loss.h"

#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using test::per_sample;

constexpr const Precision& kPureBf16 = kPrecisions[6];

// 8 positions of 4 features before a head of 32 words: 128 weights, 256 scores.
Model head_of(const std::string& layers_between = "") {
  return test::small_model("[8, 4]",
                           "      - {name: hidden, type: fully_connected, outputs: 4, bias: false, "
                           "per_position: true}\n"
                           "      - {name: head, type: fully_connected, outputs: 32, bias: false, "
                           "per_position: true}\n" +
                               layers_between + "      - {name: loss, type: cross_entropy}\n");
}

TrainingStep step_with(LossKernels loss, const Precision& precision = test::kFp32,
                       GradientAccumulation gradients = GradientAccumulation::added) {
  return test::step_of(head_of(), {.step_gradients = gradients, .loss = loss}, precision);
}

std::vector<Kernel> of_head(const TrainingStep& step, std::string_view op) {
  std::vector<Kernel> kernels = test::kernels_of(step, op);
  std::erase_if(kernels, [](const Kernel& kernel) { return kernel.layer != 1; });
  return kernels;
}

Size scores_held(const TrainingStep& step) {
  Size sum;
  for (const Tensor& tensor : step.tensors) {
    const bool map = tensor.role == TensorRole::feature_map || tensor.role == TensorRole::gradient_map;
    if (map && tensor.layer == 1) sum += tensor.bytes;
  }
  return sum;
}

Size flops(const TrainingStep& step) {
  Size sum;
  for (const Kernel& kernel : step.kernels) sum += kernel.flops * kernel.repeat;
  return sum;
}

// 32 words over 4 features: 8 parts of one position. Each part reads its 4 numbers and all weights, and
// writes 32 scores.
TEST(LinearLoss, RunsPartByPart) {
  const TrainingStep step = step_with(LossKernels::fused_linear);
  const std::vector<Kernel> products = of_head(step, "matmul");
  ASSERT_EQ(products.size(), 3u);
  for (const Kernel& kernel : products) EXPECT_EQ(kernel.repeat, 8);
  EXPECT_EQ(products[0].read_bytes, (Size{128 * 4, 4 * 4}));
  EXPECT_EQ(products[0].written_bytes, per_sample(32 * 4));
  EXPECT_EQ(std::get<GemmShape>(products[0].shape).n, per_sample(1));
  EXPECT_EQ(products[0].flops, per_sample(2 * 128));
  EXPECT_EQ(scores_held(step), per_sample(32 * 4)) << "of one part";
  EXPECT_EQ(flops(step), flops(step_with(LossKernels::fused)) + fixed_size(8 * 128))
      << "gradients are added up";
  EXPECT_EQ(scores_held(step_with(LossKernels::fused)), per_sample(256 * 4));
}

// The gradient of a part in bf16 is copied to fp32, 2 B read and 4 written for each of 128 weights, and
// added, 6 read and 2 written; a product that adds in place reads what it writes instead.
TEST(LinearLoss, AddsUpGradientsOfParts) {
  const TrainingStep added = step_with(LossKernels::fused_linear, kPureBf16);
  const std::vector<Kernel> casts = of_head(added, "cast");
  ASSERT_EQ(casts.size(), 1u);
  EXPECT_EQ(casts[0].read_bytes, fixed_size(256));
  EXPECT_EQ(casts[0].repeat, 8);
  const std::vector<Kernel> sums = of_head(added, "accumulate");
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].read_bytes, fixed_size(128 * 6));
  EXPECT_EQ(sums[0].written_bytes, fixed_size(256));
  const TrainingStep in_place =
      step_with(LossKernels::fused_linear, kPureBf16, GradientAccumulation::in_place);
  EXPECT_TRUE(of_head(in_place, "accumulate").empty());
  EXPECT_EQ(of_head(in_place, "matmul")[1].read_bytes, (Size{256, (4 + 32) * 2}));
}

// A logarithm for each position is kept; scores are computed twice, and read and written by no kernel.
TEST(LinearLoss, CutKeepsNoScores) {
  const TrainingStep step = step_with(LossKernels::cut);
  EXPECT_EQ(scores_held(step), per_sample(8 * 4));
  const std::vector<Kernel> products = of_head(step, "matmul");
  ASSERT_EQ(products.size(), 4u);
  EXPECT_EQ(products[0].written_bytes, per_sample(8 * 4));
  EXPECT_EQ(products[1].phase, Phase::backward_data);
  EXPECT_EQ(products[1].flops, products[0].flops);
  for (const Kernel& kernel : products) EXPECT_LE(kernel.read_bytes.per_sample, 8 * 4 * 4);
  EXPECT_EQ(test::kernels_of(step, "indexed_dot").size(), 1u);
  EXPECT_TRUE(test::kernels_of(step, "cross_entropy").empty());
}

// A layer between product and loss reads the scores: these are then there.
TEST(LinearLoss, NeedsTheProductBeforeTheLoss) {
  const Model model = head_of("      - {name: scaled, type: layer_scale}\n");
  const TrainingStep step = test::step_of(model, {.loss = LossKernels::fused_linear});
  EXPECT_EQ(scores_held(step).per_sample % (256 * 4), 0);
  EXPECT_GT(scores_held(step).per_sample, 0);
  for (const Kernel& kernel : step.kernels) EXPECT_EQ(kernel.repeat, 1);
}

}  // namespace
}  // namespace tbdsim
