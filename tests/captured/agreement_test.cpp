// A captured ResNet-50 and the one in YAML are the same network: parameters, multiply-adds, and the work of
// every convolution, product, norm and layout conversion. They differ in the places of maxima that pooling
// keeps, in the loss, which is one layer in YAML and three operators here, and in the optimizer: momentum
// here, with Nesterov's step there.
#include <map>

#include <gmock/gmock.h>

#include "graphs/captured/captured_step.h"
#include "hwspecs/base/error.h"
#include "simulate/prediction/predict.h"
#include "simulate/prediction/resolve.h"
#include "simulate/workload/captured_model.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::string kSteps = TBDSIM_SOURCE_DIR "/tests/captured/steps/";

Prediction predicted(SpecCache& specs, const std::string& model, const std::string& precision,
                     const std::string& variant = "") {
  return predict({.model = model,
                  .framework = "pytorch",
                  .gpu = "v100_sxm2_16gb",
                  .batch = 64,
                  .variant = variant,
                  .precision = precision},
                 specs);
}

std::int64_t parameters(const TrainingStep& step) {
  std::int64_t sum = 0;
  for (const LayerSummary& layer : step.layers) sum += layer.trained_parameters;
  return sum;
}

std::int64_t statistics(const TrainingStep& step) {
  std::int64_t sum = 0;
  for (const LayerSummary& layer : step.layers) sum += layer.statistics;
  return sum;
}

Size macs(const TrainingStep& step, Size LayerSummary::*which) {
  Size sum;
  for (const LayerSummary& layer : step.layers) sum += layer.*which;
  return sum;
}

// How often each work occurs: kind, phase, shape, operations, bytes.
using Works = std::map<std::tuple<KernelKind, Phase, Size, Size, Size>, int>;

Works works(const TrainingStep& step, KernelKind kind) {
  Works all;
  for (const Kernel& k : step.kernels) {
    if (k.kind == kind)
      all[{k.kind, k.phase, k.flops, k.read_bytes, k.written_bytes}] += static_cast<int>(k.repeat);
  }
  return all;
}

class CapturedResNet50 : public testing::Test {
 protected:
  SpecCache specs_ = test::source_specs();
  Prediction captured_ = predicted(specs_, kSteps + "resnet50_fp32.step.json.gz", "fp32");
  Prediction written_ = predicted(specs_, "resnet50", "fp32", "v1.5");
  const TrainingStep& a_ = captured_.steps->front().step;
  const TrainingStep& b_ = written_.steps->front().step;
};

TEST_F(CapturedResNet50, HasTheSameParametersAndMultiplyAdds) {
  EXPECT_EQ(parameters(a_), 25'557'032);
  EXPECT_EQ(parameters(a_), parameters(b_));
  EXPECT_EQ(statistics(a_), statistics(b_));
  EXPECT_EQ(macs(a_, &LayerSummary::forward_macs), macs(b_, &LayerSummary::forward_macs));
  EXPECT_EQ(macs(a_, &LayerSummary::training_macs), macs(b_, &LayerSummary::training_macs));
}

TEST_F(CapturedResNet50, HasTheSameConvolutionsProductsAndNorms) {
  for (const KernelKind kind :
       {KernelKind::convolution, KernelKind::gemm, KernelKind::batch_norm, KernelKind::transpose})
    EXPECT_EQ(works(a_, kind), works(b_, kind)) << name_of(kind);
}

TEST_F(CapturedResNet50, TakesTheSameTimeAndMemory) {
  EXPECT_NEAR(captured_.iteration_time() / written_.iteration_time(), 1, 0.02);
  EXPECT_NEAR(captured_.memory.total() / written_.memory.total(), 1, 0.03);
}

TEST_F(CapturedResNet50, InHalfPrecisionTakesTheSameTimeAndMemory) {
  const Prediction captured = predicted(specs_, kSteps + "resnet50_fp16.step.json.gz", "");
  EXPECT_EQ(captured.scenario.precision, "amp");
  const Prediction written = predicted(specs_, "resnet50", "amp", "v1.5");
  EXPECT_NEAR(captured.iteration_time() / written.iteration_time(), 1, 0.03);
  EXPECT_NEAR(captured.memory.total() / written.memory.total(), 1, 0.04);
}

TEST_F(CapturedResNet50, RefusesWhatACaptureHasFixed) {
  const std::string file = kSteps + "resnet50_fp32.step.json.gz";
  const auto error_of = [&](const Scenario& scenario) -> std::string {
    try {
      (void)predict(scenario, specs_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "predicted";
  };
  Scenario scenario{.model = file, .framework = "pytorch", .gpu = "v100_sxm2_16gb", .batch = 8};
  scenario.precision = "amp";
  EXPECT_THAT(
      error_of(scenario),
      HasSubstr(
          "was captured in fp32 and does not run in amp; expected one of fp32, tf32, tf32_convolutions, or "
          "another capture: tbdsim.capture(..., precision=\"fp16\")"));
  scenario.precision = "fp16_master";  // no format of captures
  EXPECT_THAT(error_of(scenario), HasSubstr("does not run in fp16_master; expected one of fp32"));
  EXPECT_THAT(error_of(scenario), Not(HasSubstr("tbdsim.capture(")));
  scenario.precision = "";
  scenario.sizes = {{"image_size", 299}};
  EXPECT_THAT(error_of(scenario), HasSubstr("image_size does not change"));
  scenario.sizes = {};
  scenario.framework = "mxnet";
  EXPECT_THAT(error_of(scenario), HasSubstr("expected a version of PyTorch"));
  SpecCache changed(specs_, {{.spec = "model", .path = {"title"}, .value = "x"}});
  EXPECT_THROW((void)changed.model(file), UsageError);
}

}  // namespace
}  // namespace tbdsim
