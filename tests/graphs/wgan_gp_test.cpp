// WGAN-GP and A3C as a whole: what each step of their training programs does. Layer by layer they are in
// model_layers_test.cpp.
#include <functional>

#include <gmock/gmock.h>

#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

Model model_of(const std::string& name, const std::string& variant) {
  const ModelFile file = read_model_file(TBDSIM_SOURCE_DIR "/graphs/models/" + name + ".yaml");
  return build_model(file, find_variant(file, variant, ""));
}

using Choice = std::function<bool(const Kernel&)>;

Size macs(const TrainingStep& step, const Choice& choice) {
  Size sum;
  for (const Kernel& kernel : step.kernels) {
    if (choice(kernel)) sum += kernel.macs * kernel.repeat;
  }
  return sum;
}

std::int64_t runs(const TrainingStep& step, const Choice& choice) {
  std::int64_t sum = 0;
  for (const Kernel& kernel : step.kernels) sum += choice(kernel) ? kernel.repeat : 0;
  return sum;
}

bool of_critic_step(const Kernel& kernel) { return kernel.repeat % 5 == 0; }

// Multiply-adds of one image: forward F_G 1,786,511,360 and F_D 1,697,390,592, backward B_G 3,571,974,144 and
// B_D 3,387,703,296 (no gradient of the noise or the image). Generator step: F_G + B_G + F_D and F_D again
// for the gradient of the image.
TEST(WganGp, GeneratorStep) {
  const TrainingStep step = test::step_of(model_of("wgan_gp", "improved_wgan"));
  EXPECT_EQ(macs(step, [](const Kernel& k) { return !of_critic_step(k); }), (Size{0, 8'753'266'688}));
}

// Critic step: F_G; two of F_D + B_D; and the penalty's F_D + F_D (to the image) + 2 F_D (along the graph) +
// B_D less what lies behind the last norm, two times the last block's second 3x3 convolution (150,994,944)
// and shortcut (4,194,304) and the last product (8,192). 21,823,569,920, of which 2 F_D + B_D - 310,394,880 =
// 6,472,089,600 are second order.
TEST(WganGp, CriticStep) {
  const TrainingStep step = test::step_of(model_of("wgan_gp", "improved_wgan"));
  EXPECT_EQ(macs(step, of_critic_step), (Size{0, 5 * 21'823'569'920}));
  EXPECT_EQ(macs(step, [](const Kernel& k) { return k.second_order; }), (Size{0, 5 * 6'472'089'600}));
}

// PyTorch 1.13 runs the training script: 26 convolutions along the graph (13, and their weights), and 12
// layers back from norms, poolings and activations with two each, but one for the first, which reads the
// image.
TEST(WganGp, SecondOrderConvolutionsOfPyTorch) {
  const TrainingStep step = test::step_of(model_of("wgan_gp", "pytorch"));
  EXPECT_EQ(runs(step, [](const Kernel& k) { return k.second_order && k.op == "conv"; }),
            5 * (26 + 12 * 2 - 1));
}

// The generator's 8,540,483 parameters once, the critic's 7,491,841 five times.
TEST(WganGp, UpdatesOfAnIteration) {
  const TrainingStep step = test::step_of(model_of("wgan_gp", "improved_wgan"));
  std::int64_t updated = 0;
  for (const Kernel& kernel : step.kernels) {
    if (kernel.phase == Phase::update)
      updated += std::get<VectorShape>(kernel.shape).elements.fixed * kernel.repeat;
  }
  EXPECT_EQ(updated, 8'540'483 + 5 * 7'491'841);
}

// A critic step feeds 3 x 64 x 64 integers of 4 bytes for each image, the generator's feeds none.
TEST(WganGp, FeedsRealImages) {
  const TrainingStep step = test::step_of(model_of("wgan_gp", "improved_wgan"));
  const Choice feeds = [](const Kernel& k) { return k.kind == KernelKind::transfer; };
  EXPECT_EQ(runs(step, feeds), 5);
  for (const Kernel& kernel : step.kernels) {
    if (feeds(kernel)) {
      EXPECT_EQ(kernel.written_bytes, (Size{0, 4 * 3 * 64 * 64}));
    }
  }
}

// The program's convolutions are NCHW under a framework that is not.
TEST(WganGp, IsNchwUnderTensorFlow) {
  const TrainingStep step = test::step_of(model_of("wgan_gp", "improved_wgan"),
                                          {.layout = Layout::nhwc, .conv_1x1 = Conv1x1::gemm});
  EXPECT_EQ(runs(step, [](const Kernel& k) { return k.op == "conv_1x1"; }), 0);
  // Only the generator's eight upsamplings transpose: twice forward in 6 steps, twice backward in one.
  EXPECT_EQ(runs(step, [](const Kernel& k) { return k.op == "nhwc_nchw"; }), 8 * 2 * (6 + 1));
}

// Nine passes are fed frames by MXNet; five of them return a policy and a value; four have an action and a
// return. 10 tensors of gradients start from zero.
TEST(A3c, CopiesOfAnIteration) {
  const TrainingStep step = test::step_of(model_of("a3c", "paper"));
  const auto copies = [&](std::string_view op) {
    return runs(step, [&](const Kernel& k) { return k.op == op; });
  };
  EXPECT_EQ(copies("host_to_device"), 9 + 4 * 2);
  EXPECT_EQ(copies("device_to_host"), 5 * 2);
  EXPECT_EQ(copies("fill"), 10);
  EXPECT_EQ(copies("adam"), 10);
}

// PyTorch's script keeps frames on the device; gradients of three of four passes are added by kernels.
TEST(A3c, FramesStayOnTheDevice) {
  const TrainingStep step =
      test::step_of(model_of("a3c", "pytorch"), {.step_gradients = GradientAccumulation::added});
  const auto copies = [&](std::string_view op) {
    return runs(step, [&](const Kernel& k) { return k.op == op; });
  };
  EXPECT_EQ(copies("host_to_device"), 5 + 4 * 2);
  EXPECT_EQ(copies("accumulate"), 3 * 10);
  EXPECT_EQ(copies("fill"), 0);
}

// Five looks and four lessons: 5 F + 4 (F + B) = 43.890 M for the paper's network, F = 2,967,296.
TEST(A3c, LooksAndLessons) {
  const TrainingStep step = test::step_of(model_of("a3c", "paper"));
  const auto forward = [](const Kernel& k) { return k.phase == Phase::forward; };
  EXPECT_EQ(macs(step, forward), (Size{0, 9 * 2'967'296}));
  EXPECT_EQ(macs(step, [](const Kernel&) { return true; }), (Size{0, 43'890'432}));
}

// Tensors live within the iteration, for any lowering and precision.
TEST(SeveralGraphs, LifetimesAreIntervalsOfTheStep) {
  const Lowering lowerings[] = {{},
                                {.relu_keeps = ReluKeeps::input_and_output,
                                 .relu_in_place = true,
                                 .weight_gradients = GradientStorage::transient,
                                 .update = UpdateKernels::fused,
                                 .step_gradients = GradientAccumulation::added,
                                 .layer_norm = Composition::composite}};
  for (const char* name : {"wgan_gp", "a3c"}) {
    const ModelFile file = read_model_file(std::string(TBDSIM_SOURCE_DIR "/graphs/models/") + name + ".yaml");
    for (const Variant& variant : file.variants) {
      for (const Lowering& lowering : lowerings) {
        for (const Precision& precision : kPrecisions) {
          const TrainingStep step = test::step_of(build_model(file, variant), lowering, precision);
          for (const Tensor& tensor : step.tensors) {
            ASSERT_GE(tensor.first_use, 0);
            ASSERT_LE(tensor.first_use, tensor.last_use) << name << tensor.layer;
            ASSERT_LT(tensor.last_use, static_cast<int>(step.kernels.size()));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tbdsim
