// `--precision default`: what a framework makes of numbers in fp32 where a program does not say.
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "graphs/captured/captured_step.h"
#include "simulate/prediction/predict.h"
#include "simulate/workload/precision_choice.h"
#include "tests/support/cli.h"

namespace tbdsim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kA100 = "a100_sxm_80gb";

class DefaultPrecision : public ::testing::Test {
 protected:
  [[nodiscard]] std::string name(const std::string& framework, const std::string& gpu) {
    const ModelFile& model = *specs_.model("resnet50");
    return std::string(precision_on(model, "default", *specs_.framework(framework), *specs_.gpu(gpu)).name);
  }

  SpecCache specs_ = test::source_specs();
};

TEST_F(DefaultPrecision, IsOfTheVersionAndTheGpu) {
  EXPECT_EQ(name("pytorch_1_3", kA100), "fp32");
  EXPECT_EQ(name("pytorch_1_8", kA100), "tf32");
  EXPECT_EQ(name("pytorch_1_10", kA100), "tf32");
  EXPECT_EQ(name("pytorch_1_12", kA100), "tf32_convolutions");
  EXPECT_EQ(name("pytorch", kA100), "tf32_convolutions");
  EXPECT_EQ(name("pytorch_ngc_1_13", kA100), "tf32");
  EXPECT_EQ(name("mxnet", kA100), "fp32");
  EXPECT_EQ(name("pytorch", "v100_sxm2_16gb"), "fp32") << "which has no TF32";
}

TEST_F(DefaultPrecision, WithoutAWordIsStillFp32) {
  const ModelFile& model = *specs_.model("resnet50");
  EXPECT_EQ(precision_on(model, "", *specs_.framework("pytorch_1_10"), *specs_.gpu(kA100)).name, "fp32");
}

TEST_F(DefaultPrecision, OfACaptureIsThatOfItsNumbers) {
  const auto of = [&](CapturedPrecision captured) {
    auto step = std::make_shared<CapturedStep>();
    step->precision = captured;
    ModelFile file;
    file.captured = step;
    return precision_on(file, "default", *specs_.framework("pytorch"), *specs_.gpu(kA100)).name;
  };
  EXPECT_EQ(of(CapturedPrecision::fp32), "tf32_convolutions");
  EXPECT_EQ(of(CapturedPrecision::tf32), "tf32_convolutions");
  EXPECT_EQ(of(CapturedPrecision::fp16), "amp");
  EXPECT_EQ(of(CapturedPrecision::pure_bf16), "bf16");
}

// Kinds of products and their arithmetic, as lowered.
std::set<std::pair<KernelKind, MathType>> products(const TrainingStep& step) {
  std::set<std::pair<KernelKind, MathType>> found;
  for (const Kernel& kernel : step.kernels) {
    const bool product = kernel.kind == KernelKind::convolution || kernel.kind == KernelKind::gemm ||
                         kernel.kind == KernelKind::recurrent;
    if (product) found.emplace(kernel.kind, kernel.math);
  }
  return found;
}

TEST_F(DefaultPrecision, ConvolutionsInTf32LeaveMatrixProductsInFp32) {
  Scenario scenario{.model = "resnet50", .framework = "pytorch", .gpu = kA100, .batch = 8};
  scenario.precision = "default";
  const Prediction p = predict(scenario, specs_);
  EXPECT_EQ(p.scenario.precision, "tf32_convolutions");
  EXPECT_EQ(products(*p.iterations.front().step),
            (std::set<std::pair<KernelKind, MathType>>{{KernelKind::gemm, MathType::fp32},
                                                       {KernelKind::convolution, MathType::tf32}}));
  // Faster than fp32, and no faster than TF32 everywhere.
  const auto time = [&](const char* precision) {
    scenario.precision = precision;
    return predict(scenario, specs_).iteration_time();
  };
  EXPECT_LT(p.iteration_time(), time("fp32"));
  EXPECT_GE(p.iteration_time(), time("tf32"));
}

TEST_F(DefaultPrecision, UnknownNamesNameIt) {
  EXPECT_THAT([] { (void)find_precision("tf32_convolution"); },
              ThrowsMessage<UsageError>(HasSubstr("did you mean 'tf32_convolutions'?")));
  EXPECT_THAT([] { (void)find_precision("defalt"); }, ThrowsMessage<UsageError>(HasSubstr("'default'?")));
}

}  // namespace
}  // namespace tbdsim
