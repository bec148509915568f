// Layers that read parts of another's output: their gradients are put side by side.
#include <algorithm>

#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"
#include "tests/graphs/work_fixture.h"

namespace tbdsim {
namespace {

using test::moving;
using test::per_sample;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Queries, keys and values of 3 positions in one product of 12 features: 4 features each, 48 B of 144 B.
constexpr const char* kLayers =
    "      - {name: qkv, type: fully_connected, outputs: 12, per_position: true}\n"
    "      - {name: q, type: split_heads, heads: 2, parts: 3}\n"
    "      - {name: k, type: split_heads, heads: 2, parts: 3, from: qkv}\n"
    "      - {name: v, type: split_heads, heads: 2, parts: 3, from: qkv}\n"
    "      - {name: scores, type: attention_scores, from: [q, k]}\n"
    "      - {name: context, type: attention_context, from: [scores, v]}\n";

std::vector<Kernel> kernels_called(const TrainingStep& step, std::string_view op) {
  std::vector<Kernel> found;
  std::copy_if(step.kernels.begin(), step.kernels.end(), std::back_inserter(found),
               [&](const Kernel& kernel) { return kernel.op == op; });
  return found;
}

std::vector<Size> gradient_maps_of(const TrainingStep& step, int layer) {
  std::vector<Size> bytes;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.role == TensorRole::gradient_map && tensor.layer == layer) bytes.push_back(tensor.bytes);
  }
  return bytes;
}

TEST(GradientParts, AreConcatenated) {
  const TrainingStep step = test::step_of(test::small_model("[3, 5]", kLayers));
  EXPECT_THAT(test::works_of(kernels_called(step, "gradient_concat")),
              ElementsAre(moving("gradient_concat", KernelKind::elementwise, Phase::backward_data, 0,
                                 per_sample(144), per_sample(144))));
  EXPECT_TRUE(kernels_called(step, "gradient_sum").empty());
  ASSERT_EQ(step.layers[0].name, "qkv");
  EXPECT_THAT(gradient_maps_of(step, 0),
              UnorderedElementsAre(per_sample(48), per_sample(48), per_sample(48), per_sample(144)));
}

// A reader of the whole: its gradient, 144 B, holds the sum, to which the parts are added.
TEST(GradientParts, AreAddedToTheGradientOfTheWhole) {
  const std::string layers = std::string(kLayers) +
                             "      - {name: merged, type: merge_heads}\n"
                             "      - {name: out, type: fully_connected, outputs: 12, per_position: true}\n"
                             "      - {name: plus, type: add, from: [out, qkv]}\n"
                             "      - {name: gelu, type: gelu}\n";
  const TrainingStep step = test::step_of(test::small_model("[3, 5]", layers));
  EXPECT_THAT(test::works_of(kernels_called(step, "gradient_sum")),
              ElementsAre(moving("gradient_sum", KernelKind::elementwise, Phase::backward_data, 36,
                                 per_sample(2 * 144), per_sample(144))));
}

}  // namespace
}  // namespace tbdsim
