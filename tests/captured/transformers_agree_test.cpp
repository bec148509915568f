// Captured transformers of Hugging Face and the catalogue's with as many layers are the same network:
// multiply-adds and bytes of all kernels, and memory by what the backward pass keeps. Captures also make
// positions and masks.
#include <gmock/gmock.h>

#include "simulate/prediction/predict.h"
#include "simulate/prediction/resolve.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

struct Pair {
  std::string step, model, attention, precision;
};

double sum_of(const Prediction& p, double (*of)(const Kernel&)) {
  double sum = 0;
  for (const Kernel& kernel : p.steps->front().step.kernels) {
    if (kernel.phase != Phase::update) sum += of(kernel) * static_cast<double>(kernel.repeat);
  }
  return sum;
}

double macs(const Kernel& kernel) { return kernel.macs.at(4); }
double bytes(const Kernel& kernel) { return kernel.read_bytes.at(4) + kernel.written_bytes.at(4); }
double maps(const Prediction& p) {
  return (p.memory.use[MemoryCategory::feature_maps] + p.memory.use[MemoryCategory::workspace]).si();
}

class CapturedTransformers : public testing::TestWithParam<Pair> {};

TEST_P(CapturedTransformers, AgreeWithTheCatalogue) {
  const Pair& pair = GetParam();
  const test::TempDir directory;
  const std::string model = directory.write(
      "two_layers.yaml", "title: t\nbased_on: " + pair.model +
                             "\nvariants:\n  two: {description: d, source: s, optimizer: adam, "
                             "parameters: {last_layer: 1, sequence_length: 1024}}\n");
  const std::string framework =
      directory.write("framework.yaml",
                      "title: t\nbased_on: pytorch\nlowering: {weight_gradients: until_update, "
                      "linear_bias: fused, attention: " +
                          pair.attention + "}\nsources: {lowering: as pytorch_hf}\n");
  const std::string step = TBDSIM_SOURCE_DIR "/tests/captured/transformers." + pair.step + ".step.json.gz";
  SpecCache specs = test::source_specs();
  const auto predicted = [&](const std::string& what, const std::string& precision) {
    return predict(
        {.model = what, .framework = framework, .gpu = "a100_sxm_80gb", .batch = 4, .precision = precision},
        specs);
  };
  const Prediction captured = predicted(step, "");
  const Prediction written = predicted(model, pair.precision);
  EXPECT_NEAR(sum_of(written, macs) / sum_of(captured, macs), 1, 0.002);
  EXPECT_NEAR(sum_of(written, bytes) / sum_of(captured, bytes), 1, 0.06);
  EXPECT_NEAR(maps(written) / maps(captured), 1, 0.01);
}

INSTANTIATE_TEST_SUITE_P(
    OfHuggingFace, CapturedTransformers,
    testing::Values(Pair{"llama_two_layers.pure_bf16.sdpa", "llama", "fused", "bf16_pure"},
                    Pair{"llama_two_layers.pure_bf16.eager", "llama", "eager", "bf16_pure"},
                    Pair{"gpt2_two_layers.fp32.eager", "gpt2", "eager", "fp32"}),
    [](const auto& test) {
      std::string name = test.param.step;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

}  // namespace
}  // namespace tbdsim
