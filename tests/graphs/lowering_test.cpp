// Keys of a lowering in which a model's variant differs from its framework.
#include <algorithm>

#include <gmock/gmock.h>

#include "graphs/lowering_reader.h"
#include "tests/graphs/layer_fixture.h"
#include "tests/graphs/model_fixture.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(LoweringOverride, ReplacesTheKeysItHas) {
  const SpecTree tree = parse_spec("{layout: nchw, parameter_copies: 2, variables: host}", "model.yaml");
  const Lowering framework{.layout = Layout::nhwc, .conv_1x1 = Conv1x1::gemm};
  Lowering expected = framework;
  expected.layout = Layout::nchw;
  expected.parameter_copies = 2;
  expected.variables = Variables::host;
  EXPECT_EQ(override_lowering(SpecNode(tree), framework), expected);
}

TEST(LoweringOverride, AFrameworkSaysEverything) {
  const SpecTree tree = parse_spec("{layout: nchw}", "framework.yaml");
  EXPECT_THAT([&] { (void)read_lowering(SpecNode(tree)); },
              ThrowsMessage<SpecError>(HasSubstr("key 'tensor_core_layout' is missing")));
}

std::string with_lowering(const std::string& lowering) {
  return "title: T\nsample: image\nvariants:\n  v: {description: d, source: s, optimizer: sgd, lowering: " +
         lowering +
         "}\ngraphs:\n  main: {inputs: {data: [3, 4, 4]}, outputs: [conv], layers: [{name: conv, type: "
         "conv2d, "
         "filters: 2, kernel: 3, padding: same}]}\ntraining: [{graph: main, backward: none}]\n";
}

// The framework transposes around a convolution, the variant's code does not.
TEST(LoweringOverride, OfAVariantHoldsUnderAnyFramework) {
  const Lowering framework{.layout = Layout::nhwc};
  EXPECT_EQ(test::step_of(test::model_from(with_lowering("{relu_in_place: true}")), framework).kernels.size(),
            3u);
  EXPECT_EQ(test::step_of(test::model_from(with_lowering("{layout: nchw}")), framework).kernels.size(), 1u);
}

// A framework that rewrites graphs of half precision to NHWC does so for any layout of the variant's code.
TEST(HalfLayout, HoldsForHalfPrecisionAlone) {
  Lowering framework{.tensor_core_layout = Layout::nhwc};
  framework.half_layout = Layout::nhwc;
  const auto transposes = [&](const Precision& precision) {
    const TrainingStep step =
        test::step_of(test::model_from(with_lowering("{layout: nchw}")), framework, precision);
    return std::count_if(step.kernels.begin(), step.kernels.end(),
                         [](const Kernel& kernel) { return kernel.kind == KernelKind::transpose; });
  };
  EXPECT_EQ(transposes(kPrecisions[1]), 1);  // tf32: tensor cores, images of 4 B
  EXPECT_EQ(transposes(test::kFp16), 0);
  framework.half_layout.reset();
  EXPECT_EQ(transposes(test::kFp16), 1);
}

// Programs with Apex write GELU by terms; those in fp32 call the framework's.
TEST(HalfGelu, HoldsForHalfPrecisionAlone) {
  const Model model = test::small_model("[8]", "      - {name: gelu, type: gelu}\n");
  const Lowering framework =
      override_lowering(SpecNode(parse_spec("{half_gelu: composite}", "framework.yaml")), Lowering{});
  EXPECT_EQ(lowering_of(model, framework, test::kFp16).gelu, Composition::composite);
  EXPECT_EQ(lowering_of(model, framework, test::kFp32).gelu, Composition::fused);
}

TEST(LoweringOverrideErrors, StandAtTheirPlace) {
  EXPECT_THAT([] { (void)test::model_from(with_lowering("{layout: nwhc}")); },
              ThrowsMessage<SpecError>(HasSubstr("variants.v.lowering.layout: 'nwhc' is unknown")));
  EXPECT_THAT([] { (void)test::model_from(with_lowering("{laiout: nchw}")); },
              ThrowsMessage<SpecError>(HasSubstr("did you mean 'layout'?")));
}

// The passes of a training may be parameters, as layers may.
TEST(TrainingParameters, AreFilledIn) {
  const Model model = test::model_from(
      "title: T\nsample: image\nparameters: {times: 3, runs: [{graph: main, backward: none}]}\n"
      "variants:\n  v: {description: d, source: s, optimizer: sgd, parameters: {times: 4}}\n"
      "graphs:\n  main: {inputs: {data: [3]}, outputs: [relu], layers: [{name: relu, type: relu}]}\n"
      "training: [{runs: $runs, repeat: $times}]\n");
  ASSERT_EQ(model.training.size(), 1u);
  EXPECT_EQ(model.training[0].repeat, 4);
  EXPECT_EQ(model.training[0].runs[0].backward, Backward::none);
}

}  // namespace
}  // namespace tbdsim
