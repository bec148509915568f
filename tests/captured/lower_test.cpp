// What becomes of a whole captured step: lifetimes, gradients, layers, and what versions of PyTorch differ
// in.
#include "graphs/captured/lower.h"

#include <gmock/gmock.h>

#include "tests/captured/step_builder.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::ElementsAre;

// y = x * w (autocast), loss = sum y, dw by a product and a cast, w -= dw through a temporary.
class CapturedLinear : public testing::Test {
 protected:
  CapturedLinear() {
    const auto fixed = [](std::int64_t n) { return fixed_size(n); };
    x = b.tensor({growing(1), fixed(4)}, Dtype::f16, StorageRole::input);
    w = b.tensor({fixed(4), fixed(2)}, Dtype::f32, StorageRole::parameter, "a.weight");
    half_w = b.tensor({fixed(4), fixed(2)}, Dtype::f16);
    y = b.tensor({growing(1), fixed(2)}, Dtype::f16);
    dy = b.tensor({growing(1), fixed(2)}, Dtype::f16, StorageRole::gradient_map);
    half_dw = b.tensor({fixed(4), fixed(2)}, Dtype::f16, StorageRole::gradient_map);
    dw = b.tensor({fixed(4), fixed(2)}, Dtype::f32, StorageRole::gradient, "a.weight");
    step = b.tensor({fixed(4), fixed(2)}, Dtype::f32, StorageRole::temporary);
    v = b.tensor({fixed(4), fixed(2)}, Dtype::f32, StorageRole::state, "a.weight.momentum_buffer");
    b.add("aten._to_copy.default", {ref(w)}, {half_w}, StepPhase::forward, 1)
        .add("aten.mm.default", {ref(x), ref(half_w)}, {y}, StepPhase::forward, 1)
        .add("aten.ones_like.default", {ref(y)}, {dy}, StepPhase::backward)
        .add("aten.detach.default", {ref(dy)}, {dy}, StepPhase::backward)
        .add("aten.mm.default", {ref(b.transposed(x)), ref(dy)}, {half_dw}, StepPhase::backward, 1)
        .add("aten._to_copy.default", {ref(half_dw)}, {dw}, StepPhase::backward, 1)
        .add("aten.mul.Tensor", {ref(dw), {0.1}}, {step}, StepPhase::update)
        .add("aten.sub_.Tensor", {ref(w), ref(step)}, {w}, StepPhase::update);
    lives(half_w, 0, 4);
    lives(y, 1, 2);
    lives(dy, 2, 4);
    lives(half_dw, 4, 5);
    lives(dw, 5, -1);
    lives(step, 6, 7);
  }
  void lives(int tensor, int born, int freed) {
    b.storage_of(tensor).born = born;
    b.storage_of(tensor).freed = freed;
  }

  StepBuilder b;
  int x = 0, w = 0, half_w = 0, y = 0, dy = 0, half_dw = 0, dw = 0, step = 0, v = 0;
};

// Kernels: cast 0, product 1, ones 2, product 3, cast 4, mul 5, sub 6; detach is a view.
TEST_F(CapturedLinear, LifetimesAreThoseOfTheStorages) {
  const TrainingStep lowered = b.lowered();
  ASSERT_EQ(lowered.kernels.size(), 7u);
  const auto lives_of = [&](TensorRole role, Size bytes) {
    std::vector<std::pair<int, int>> found;
    for (const Tensor& tensor : lowered.tensors) {
      if (tensor.role == role && tensor.bytes == bytes) found.emplace_back(tensor.first_use, tensor.last_use);
    }
    return found;
  };
  EXPECT_THAT(lives_of(TensorRole::weights, fixed_size(32)), ElementsAre(std::pair(0, 6)));
  EXPECT_THAT(lives_of(TensorRole::weights, fixed_size(16)), ElementsAre(std::pair(0, 3)));  // the cast
  EXPECT_THAT(lives_of(TensorRole::feature_map, growing(4)), ElementsAre(std::pair(1, 2)));
  EXPECT_THAT(lives_of(TensorRole::gradient_map, growing(4)), ElementsAre(std::pair(2, 3)));
  EXPECT_THAT(lives_of(TensorRole::weight_gradients, fixed_size(32)), ElementsAre(std::pair(4, 6)));
  EXPECT_THAT(lives_of(TensorRole::dynamic, fixed_size(32)), ElementsAre(std::pair(0, 6)));
  EXPECT_EQ(lowered.kernels[4].scratch_bytes, Size{});
  EXPECT_EQ(lowered.kernels[5].scratch_bytes, fixed_size(32));
  EXPECT_EQ(lowered.kernels[6].scratch_bytes, fixed_size(32));
}

TEST_F(CapturedLinear, GradientsOfParametersAreTold) {
  const TrainingStep lowered = b.lowered();
  EXPECT_EQ(lowered.kernels[2].phase, Phase::backward_data);
  EXPECT_EQ(lowered.kernels[3].phase, Phase::backward_weights);  // a cast makes the gradient of it
  EXPECT_EQ(lowered.kernels[4].phase, Phase::backward_weights);
  EXPECT_EQ(lowered.kernels[5].phase, Phase::update);
  ASSERT_EQ(lowered.gradients.size(), 1u);
  EXPECT_EQ(lowered.gradients[0].layer, 1);
  EXPECT_EQ(lowered.gradients[0].elements, fixed_size(8));
  EXPECT_EQ(lowered.gradients[0].ready, 4);
}

TEST_F(CapturedLinear, ModulesAreLayers) {
  const TrainingStep lowered = b.lowered();
  ASSERT_EQ(lowered.layers.size(), 3u);
  EXPECT_EQ(lowered.layers[0].name, "test");
  EXPECT_EQ(lowered.layers[1].name, "a");
  EXPECT_EQ(lowered.layers[1].trained_parameters, 8);
  EXPECT_EQ(lowered.layers[1].forward_macs, growing(8));
  EXPECT_EQ(lowered.layers[1].training_macs, growing(16));
  EXPECT_EQ(lowered.layers[1].output, (Shape{growing(1), {2}}));
}

// PyTorch 1.x fills gradients with zeros and adds each new one, which lives beside it until then.
TEST_F(CapturedLinear, ZeroedGradientsAreAddedTo) {
  const TrainingStep lowered = b.lowered({.zero_gradients = true});
  ASSERT_EQ(lowered.kernels.size(), 9u);
  EXPECT_EQ(lowered.kernels[0].op, "fill");
  EXPECT_EQ(lowered.kernels[0].written_bytes, fixed_size(32));
  EXPECT_EQ(lowered.kernels[6].op, "add");
  EXPECT_EQ(lowered.kernels[6].read_bytes, fixed_size(64));
  EXPECT_EQ(lowered.kernels[6].layer, 1);
  EXPECT_EQ(lowered.gradients[0].ready, 6);
  std::vector<std::pair<int, int>> kept, added;
  for (const Tensor& tensor : lowered.tensors) {
    if (tensor.role == TensorRole::weight_gradients) kept.emplace_back(tensor.first_use, tensor.last_use);
    if (tensor.role == TensorRole::gradient_map && tensor.bytes == fixed_size(32))
      added.emplace_back(tensor.first_use, tensor.last_use);
  }
  EXPECT_THAT(kept, ElementsAre(std::pair(0, 8)));
  EXPECT_THAT(added, ElementsAre(std::pair(5, 6)));
}

}  // namespace
}  // namespace tbdsim
