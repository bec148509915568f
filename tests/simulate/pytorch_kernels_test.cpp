// Kernels of a training step under versions of PyTorch, against a trace.
#include <algorithm>

#include <gmock/gmock.h>

#include "graphs/training_step.h"
#include "simulate/workload/spec_cache.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

// A public trace of PyTorch 1.8 (pytorch/kineto at be239c044d2f, tb_plugin/samples/resnet50_num_workers_0;
// SGD with momentum) has in each step, over 161 parameter tensors: 515 additions of floats, which are 161
// sums with zeroed gradients, 161 of the momentum, 161 of the parameters, 16 residuals and 16 gradient sums;
// 161 multiplications by the momentum; 163 fills, two of them not of gradients; 53 additions of an int64; 53
// norms and 49 ReLUs each way.
TEST(PyTorchKernels, AreThoseOfATraceOfResNet50) {
  SpecCache specs = test::source_specs();
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/resnet50.yaml");
  Model model = build_model(file, find_variant(file, "v1.5", ""));
  model.variant.optimizer = *std::ranges::find(kOptimizers, "momentum", &Optimizer::name);
  const TrainingStep step =
      expand_training_step(model, specs.framework("pytorch_1_8")->lowering, kPrecisions[0]);
  const auto runs = [&](std::string_view op) { return std::ranges::count(step.kernels, op, &Kernel::op); };
  EXPECT_EQ(runs("add") + runs("accumulate") + runs("gradient_sum"), 515);
  EXPECT_EQ(runs("mul"), 161);
  EXPECT_EQ(runs("fill"), 163 - 2);
  EXPECT_EQ(runs("count_batches"), 53);
  EXPECT_EQ(runs("batch_norm"), 2 * 53);
  EXPECT_EQ(runs("relu"), 2 * 49);
}

// From 2.0 on optimizers are foreach: each operator of the update goes over all tensors, no zeros. 161
// tensors are 508 chunks of 65,536 numbers; a launch has at most 320 of them, and 110, 64 or 48 tensors of
// one, two or three lists: v *= mu in three launches, v += g in three, d = g + mu v in four, w -= lr d in
// three.
TEST(PyTorchKernels, AreFewerFrom2On) {
  SpecCache specs = test::source_specs();
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/resnet50.yaml");
  const Model model = build_model(file, find_variant(file, "v1.5", ""));
  ASSERT_EQ(model.variant.optimizer.name, "nesterov");
  const TrainingStep step = expand_training_step(model, specs.framework("pytorch")->lowering, kPrecisions[0]);
  EXPECT_EQ(std::ranges::count(step.kernels, KernelKind::update, &Kernel::kind), 3 + 3 + 4 + 3);
  EXPECT_EQ(std::ranges::count(step.kernels, "fill", &Kernel::op), 0);
  EXPECT_EQ(std::ranges::count(step.kernels, "accumulate", &Kernel::op), 0);
}

}  // namespace
}  // namespace tbdsim
