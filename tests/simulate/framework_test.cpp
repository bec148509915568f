// Frameworks: every file of the catalogue, and what the reader accepts.
#include "simulate/framework.h"

#include <gmock/gmock.h>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/error.h"
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

// What the TBD paper and the frameworks' sources say (each file names where): TensorFlow is NHWC and
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
    "lowering: {layout: nhwc, conv_1x1: gemm, relu_keeps: input_and_output, relu_in_place: true,\n"
    "           weight_gradients: transient, update: fused, parameter_copies: 2, "
    "recurrence: cells, cell_products: separate, cell_pointwise: composite, "
    "step_gradients: in_place, joins: whole, "
    "layer_norm: fused, dropout: fused, softmax: fused, embedding_gradient: dense, "
    "global_norm: fused}\n"
    "workspace_limit: 64 MiB\n"
    "context_memory: 100 MB\n"
    "sources: {lowering: a test, workspace_limit: a test, context_memory: a test}\n";

Framework framework_from(const std::string& text) {
  const test::TempDir directory;
  return read_framework(directory.write("mine.yaml", text));
}

TEST(ReadFramework, ReadsEveryKey) {
  const Framework framework = framework_from(kText);
  EXPECT_EQ(framework.name, "mine");
  EXPECT_EQ(framework.title, "Mine 1.0");
  EXPECT_EQ(framework.lowering, (Lowering{.layout = Layout::nhwc,
                                          .conv_1x1 = Conv1x1::gemm,
                                          .relu_keeps = ReluKeeps::input_and_output,
                                          .relu_in_place = true,
                                          .weight_gradients = GradientStorage::transient,
                                          .update = UpdateKernels::fused,
                                          .parameter_copies = 2}));
  EXPECT_EQ(framework.workspace_limit.si(), 64.0 * 1024 * 1024);
  EXPECT_EQ(framework.context_memory.si(), 100e6);
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
}

}  // namespace
}  // namespace tbdsim
