// SyncBatchNorm's kernels: four of PyTorch's own in place of two of the library's.
#include "simulate/prediction/synced_norm_kernels.h"

#include <gmock/gmock.h>

#include "graphs/aten_batch_norm.h"
#include "simulate/prediction/predict.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

// Images of 3 x 4 x 5 numbers of 2 B: 120 B a sample. Sums read the input and the gradient, the gradient of
// the input reads both again and is written.
TEST(SyncedNormKernels, BytesOfTheBackwardPass) {
  const AtenBatchNorm norm{.images = {{0, 1}, 3, 4, 5}, .elements = {0, 60}, .element_bytes = 2};
  const std::vector<Kernel> kernels = synced_backward_kernels(norm, true);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].read_bytes, (Size{0, 240}));
  EXPECT_EQ(kernels[0].written_bytes, Size{});
  EXPECT_EQ(kernels[1].read_bytes, (Size{0, 240}));
  EXPECT_EQ(kernels[1].written_bytes, (Size{0, 120}));
  EXPECT_EQ(synced_backward_kernels(norm, false).size(), 1u);  // no gradient of the input
}

Prediction efficientdet(const std::string& variant, int gpus, const std::string& precision = "tf32",
                        const std::string& framework = "pytorch_ngc_1_9") {
  static SpecCache specs = test::source_specs();
  Scenario scenario{.model = "efficientdet",
                    .framework = framework,
                    .gpu = "a100_sxm_80gb",
                    .batch = 80,
                    .variant = variant,
                    .precision = precision};
  scenario.cluster.gpus = gpus;
  if (gpus > 1) scenario.cluster.network = "nvlink";
  return predict(scenario, specs);
}

TEST(SyncedNormKernels, SeveralGpusRunThemOneDoesNot) {
  const Prediction two = efficientdet("deep_learning_examples", 2);
  const Seconds longer = synced_norm_kernels(two, two.iterations.front());
  EXPECT_GT(longer, Seconds(0));
  EXPECT_GE(two.iterations.front().sync.contention, longer);
  EXPECT_EQ(efficientdet("deep_learning_examples", 1).iterations.front().sync.added(), Seconds(0));
  const Prediction own = efficientdet("suite_pytorch", 2);  // statistics of each rank
  EXPECT_EQ(synced_norm_kernels(own, own.iterations.front()), Seconds(0));
}

// One GPU runs PyTorch's own norms in bf16. Of NCHW the sums and the gradients of the input are apart: 2 + 3
// passes over the images in place of 5. Of NHWC they are apart in either case.
TEST(SyncedNormKernels, Bf16AddsNoForwardPass) {
  const Prediction two = efficientdet("deep_learning_examples", 2, "bf16");
  ASSERT_EQ(two.framework->lowering.layout, Layout::nchw);
  const Iteration& iteration = two.iterations.front();
  Seconds forward, backward;
  for (std::size_t k = 0; k < iteration.costs.size(); ++k) {
    const Kernel& kernel = iteration.step->kernels[k];
    if (!is_aten_norm(kernel)) continue;
    (kernel.phase == Phase::forward ? forward : backward) +=
        iteration.costs[k].total * static_cast<double>(kernel.repeat);
  }
  ASSERT_GT(forward, Seconds(0));
  const Seconds longer = synced_norm_kernels(two, iteration);
  EXPECT_LT(longer, forward * 0.5);
  EXPECT_LT(longer, backward * 0.5);
  const Prediction nhwc = efficientdet("deep_learning_examples", 2, "bf16", "pytorch_channels_last");
  ASSERT_EQ(nhwc.framework->lowering.layout, Layout::nhwc);
  EXPECT_EQ(synced_norm_kernels(nhwc, nhwc.iterations.front()), Seconds(0));
}

// The framework's factors apply to these kernels as to those of the step.
TEST(SyncedNormKernels, TakeTheFactorsOfTheFramework) {
  Prediction two = efficientdet("deep_learning_examples", 2);
  Iteration iteration = two.iterations.front();
  const Seconds before = synced_norm_kernels(two, iteration);
  for (double& factor : two.factors) factor *= 2;
  for (KernelCost& cost : iteration.costs) scale(cost, 2);
  EXPECT_NEAR(synced_norm_kernels(two, iteration) / before, 2, 1e-3);
}

}  // namespace
}  // namespace tbdsim
