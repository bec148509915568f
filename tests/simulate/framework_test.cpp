// Frameworks: every file of the catalogue, and what the reader accepts.
#include <gmock/gmock.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/workload/spec_cache.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Frameworks, EveryFileOfTheCatalogueLoads) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const auto names = catalog.names(Kind::framework);
  ASSERT_THAT(names, testing::IsSupersetOf({"cntk", "mxnet", "tensorflow"}));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Framework framework = read_framework(catalog.find(Kind::framework, name));
    EXPECT_EQ(framework.name, name);
    EXPECT_FALSE(framework.title.empty());
    EXPECT_GT(framework.workspace_limit.si(), 0);
    EXPECT_GT(framework.context_memory.si(), 0);
    for (const char* key : {"lowering", "workspace_limit", "context_memory"}) {
      EXPECT_TRUE(framework.sources.contains(key)) << key;
    }
  }
}

// Facts of the TBD paper and of the frameworks' sources (each file names the place): TensorFlow is NHWC and
// multiplies matrices for 1x1 convolutions, MXNet keeps inputs and outputs of activations and a second copy
// of the weights.
TEST(Frameworks, OfTheTbdSuite) {
  const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  const auto lowering = [&](const char* name) {
    return read_framework(catalog.find(Kind::framework, name)).lowering;
  };
  EXPECT_EQ(lowering("tensorflow").layout, Layout::nhwc);
  EXPECT_EQ(lowering("tensorflow").conv_1x1, Conv1x1::gemm);
  EXPECT_EQ(lowering("mxnet").relu_keeps, ReluKeeps::input_and_output);
  EXPECT_EQ(lowering("mxnet").parameter_copies, 1);
  EXPECT_EQ(lowering("cntk").layout, Layout::nchw);
}

constexpr const char* kText =
    "title: Mine 1.0\n"
    "lowering: {layout: nhwc, tensor_core_layout: nhwc, conv_1x1: gemm, relu_keeps: input_and_output, "
    "relu_in_place: true,\n"
    "           weight_gradients: transient, update: fused, parameter_copies: 2, "
    "recurrence: cells, cell_products: separate, cell_pointwise: composite, "
    "step_gradients: in_place, joins: whole, "
    "layer_norm: fused, dropout: fused, softmax: fused, embedding_gradient: dense, "
    "global_norm: fused}\n"
    "execution: {kernel: 5 us, segment: 15, after_iteration: false,\n"
    "            sources: {kernel: a test, segment: a test, after_iteration: a test}}\n"
    "factors: {convolution: 1.25}\n"
    "workspace_limit: 64 MiB\n"
    "context_memory: 100 MB\n"
    "sources: {lowering: a test, factors: a test, workspace_limit: a test, context_memory: a test}\n";

Framework framework_from(const std::string& text) {
  const test::TempDir directory;
  return read_framework(directory.write("mine.yaml", text));
}

TEST(ReadFramework, ReadsEveryKey) {
  const Framework framework = framework_from(kText);
  EXPECT_EQ(framework.name, "mine");
  EXPECT_EQ(framework.title, "Mine 1.0");
  EXPECT_EQ(framework.lowering, (Lowering{.layout = Layout::nhwc,
                                          .tensor_core_layout = Layout::nhwc,
                                          .conv_1x1 = Conv1x1::gemm,
                                          .relu_keeps = ReluKeeps::input_and_output,
                                          .relu_in_place = true,
                                          .weight_gradients = GradientStorage::transient,
                                          .update = UpdateKernels::fused,
                                          .parameter_copies = 2}));
  EXPECT_EQ(framework.workspace_limit.si(), 64.0 * 1024 * 1024);
  EXPECT_EQ(framework.context_memory.si(), 100e6);
  EXPECT_EQ(framework.family, "mine");
  EXPECT_DOUBLE_EQ(framework.launch_model.launch_overhead.si(), 5e-6);
  EXPECT_EQ(framework.launch_model.kernels_per_sync, 15);
  EXPECT_FALSE(framework.launch_model.sync_after_iteration);
  EXPECT_EQ(framework.launch_model.sources.at("kernel"), "a test");
  EXPECT_EQ(framework.factors[index_of(KernelKind::convolution)], 1.25);
  EXPECT_EQ(framework.factors[index_of(KernelKind::gemm)], 1);
}

TEST(ReadFramework, FactorsOfAnArchitectureAreForItsGpusOnly) {
  const test::TempDir directory;
  std::string text(kText);
  text.replace(text.find("convolution: 1.25"), std::string("convolution: 1.25").size(),
               "convolution: 1.25, on: {sm_80: 1.2}");
  const Framework framework = read_framework(directory.write("mine.yaml", text));
  GpuSpec gpu;
  gpu.compute_capability = 8.0;
  const auto factors = [&] { return factors_on(framework, gpu, MathType::fp32); };
  EXPECT_DOUBLE_EQ(factors()[index_of(KernelKind::convolution)], 1.5);
  EXPECT_DOUBLE_EQ(factors()[index_of(KernelKind::gemm)], 1.2);
  gpu.compute_capability = 8.6;
  EXPECT_EQ(factors(), framework.factors);
}

// On tensor cores in half precision, and of convolutions alone.
TEST(ReadFramework, AFactorOfConvolutionsInHalfPrecision) {
  const test::TempDir directory;
  std::string text(kText);
  text.replace(text.find("convolution: 1.25"), std::string("convolution: 1.25").size(),
               "convolution: 1.25, half_convolution: 1.2");
  const Framework framework = read_framework(directory.write("mine.yaml", text));
  GpuSpec gpu;
  gpu.compute_capability = 7.5;
  const auto factor = [&](MathType math, KernelKind kind) {
    return factors_on(framework, gpu, math)[index_of(kind)];
  };
  EXPECT_DOUBLE_EQ(factor(MathType::fp16, KernelKind::convolution), 1.5);
  EXPECT_DOUBLE_EQ(factor(MathType::bf16, KernelKind::convolution), 1.5);
  EXPECT_DOUBLE_EQ(factor(MathType::tf32, KernelKind::convolution), 1.25);
  EXPECT_DOUBLE_EQ(factor(MathType::fp32, KernelKind::convolution), 1.25);
  EXPECT_DOUBLE_EQ(factor(MathType::fp16, KernelKind::gemm), 1);
  gpu.compute_capability = 6.1;
  EXPECT_DOUBLE_EQ(factor(MathType::fp16, KernelKind::convolution), 1.25);
}

// A file gives what differs from the one it is based on; what it does not give keeps its source.
TEST(ReadFramework, BasedOnAnother) {
  const test::TempDir directory;
  directory.write("mine.yaml", kText);
  const Framework framework = read_framework(directory.write(
      "mine_2.yaml",
      "title: Mine 2.0\nbased_on: mine\nversions: [2.0, '2.1']\nlowering: {layout: nchw}\n"
      "execution: {update: 7 us, sources: {update: another}}\nsources: {lowering: another}\n"));
  EXPECT_EQ(framework.name, "mine_2");
  EXPECT_EQ(framework.family, "mine");
  EXPECT_THAT(framework.versions, testing::ElementsAre("2.0", "2.1"));
  EXPECT_EQ(framework.lowering.layout, Layout::nchw);
  EXPECT_EQ(framework.lowering.conv_1x1, Conv1x1::gemm);
  EXPECT_DOUBLE_EQ(framework.launch_model.launch_overhead.si(), 5e-6);
  EXPECT_DOUBLE_EQ(framework.launch_model.update_overhead.si(), 7e-6);
  EXPECT_EQ(framework.sources.at("lowering"), "another");
  EXPECT_EQ(framework.sources.at("workspace_limit"), "a test");
  const auto error = [&](const char* base, const char* part) {
    const auto file =
        directory.write("bad.yaml", "title: Bad\nbased_on: " + std::string(base) + "\nsources: {}\n");
    EXPECT_THAT([&] { (void)read_framework(file); }, ThrowsMessage<SpecError>(HasSubstr(part)));
  };
  directory.write("worse.yaml", "title: Worse\nbased_on: bad\nsources: {}\n");
  error("worse", "without end");
  error("theirs", "there is no framework 'theirs' in the catalogue or the same folder");
  error("mime", "did you mean 'mine'?");
  error("../mine", "is a path");
}

// A file of one's own may be based on the catalogue's frameworks, also under the name of one.
TEST(ReadFramework, BasedOnTheCatalogue) {
  const test::TempDir directory;
  for (const char* name : {"mine.yaml", "pytorch.yaml"}) {
    const std::string file = directory.write(name,
                                             "title: Mine\nbased_on: pytorch\nfactors: {convolution: 1.1}\n"
                                             "sources: {factors: a test}\n");
    const test::CliResult result =
        test::run({"--framework", file, "--gpu", "titanxp", "--batch", "8", "--model", "resnet50"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST(FrameworkOfVersion, TakesTheLongestTextThatIsThere) {
  const test::TempDir directory;
  for (const KindInfo& kind : kKinds) std::filesystem::create_directories(directory.path() / kind.folder);
  const auto write = [&](const std::string& name, const std::string& versions) {
    std::string text = "title: Mine\nversions: [" + versions + "]\n";
    text += name == "mine" ? std::string(kText).substr(std::string(kText).find('\n') + 1)
                           : "based_on: mine\nsources: {}\n";
    directory.write("simulate/frameworks/" + name + ".yaml", text);
  };
  write("mine", "\"1.0\"");
  write("mine_1_2", "\"1.2\"");
  write("mine_1_20", "\"1.20\"");
  write("mine_ngc", "NGC, NGC 20");
  SpecCache specs{Catalog::from(directory.path())};
  const auto named = [&](const char* text) { return specs.framework_of_version("mine", text)->name; };
  EXPECT_EQ(named("Mine 1.2.0, CUDA 9"), "mine_1_2");
  EXPECT_EQ(named("1.20.1"), "mine_1_20");
  EXPECT_EQ(named("11.2"), "mine_1_20");  // the latest of earlier ones
  EXPECT_EQ(named("0.1.2"), "mine");      // the earliest of later ones
  EXPECT_EQ(named("1.21"), "mine_1_20");
  EXPECT_EQ(named("1.19.3"), "mine_1_2");
  EXPECT_EQ(named("1.x"), "mine_1_20");
  EXPECT_EQ(named("2018"), "mine");  // a year is no release
  EXPECT_EQ(named("NGC 20.03, Mine 1.2"), "mine_ngc");
  EXPECT_EQ(named(""), "mine");
}

TEST(ReadFramework, Errors) {
  const auto expect_error = [](const std::string& from, const std::string& to, const std::string& part) {
    std::string text = kText;
    text.replace(text.find(from), from.size(), to);
    EXPECT_THAT([&] { (void)framework_from(text); }, ThrowsMessage<SpecError>(HasSubstr(part))) << text;
  };
  expect_error("nhwc", "nhwcc", "did you mean 'nhwc'?");
  expect_error("64 MiB", "64", "workspace_limit");
  expect_error("relu_in_place: true", "relu_in_place: yes", "relu_in_place");
  expect_error("parameter_copies: 2", "parameter_copies: 99", "parameter_copies");
  expect_error("context_memory: a test", "context: a test",
               "a source for 'context', which this file does not give");
  expect_error(", context_memory: a test", "", "context_memory");
  expect_error(", update: fused", "", "update");
  expect_error("kernel: 5 us", "kernel: 5", "execution.kernel");
  expect_error("sources: {kernel: a test, segment: a test, after_iteration: a test}", "sources: {}",
               "no source for 'kernel'");
  expect_error(", after_iteration: a test", "", "no source for 'after_iteration'");
  expect_error("convolution: 1.25", "convolutions: 1.25", "did you mean 'convolution'?");
  expect_error("convolution: 1.25", "convolution: 0", "factors.convolution");
  expect_error("convolution: 1.25", "on: {sm_80: 0}", "factors.on.sm_80");
  expect_error("convolution: 1.25", "on: {a100: 1.1}", "is of a100; expected compute capabilities, as sm_80");
}

}  // namespace
}  // namespace tbdsim
