// Networks of other tools become models whose parameters and multiply-adds are those that are published.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "simulate/import/network.h"
#include "simulate/import/network_files.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/files.h"
#include "tests/import/network_counts.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using test::Counts;
using test::import_file;
using testing::HasSubstr;

// Counts that `show` tells of an imported file.
Counts imported(const std::string& file, const std::vector<std::string>& more = {}) {
  const test::TempDir dir;
  std::vector<std::string> arguments = {"import", import_file(file), "-o", dir.path().string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const test::CliResult result = test::run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string path = (dir.path() / (std::filesystem::path(file).stem().string() + ".yaml")).string();
  const test::CliResult predicted =
      test::run({"--model", path, "--framework", "pytorch", "--gpu", "v100_sxm2_16gb", "--batch", "32"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  return test::counts_of_model(path);
}

// TalwalkarLab/paleo nets/alex_v2.json: 50,303,912 parameters, 736,555,776 multiply-adds.
TEST(Paleo, AlexNetV2HasItsPublishedCounts) {
  EXPECT_EQ(imported("alexnet_paleo.json"), (Counts{50'303'912, 736'555'776}));
}

// The model zoo's bvlc_alexnet: 60,965,224 parameters. Multiply-adds: 55^2 96 363 + 27^2 256 1200 + 13^2 (384
// 2304 + 384 1728 + 256 1728) + 9216 4096 + 4096^2 + 4096 1000.
TEST(Prototxt, AlexNetHasItsPublishedCounts) {
  const std::int64_t macs = 55LL * 55 * 96 * 363 + 27LL * 27 * 256 * 1200 +
                            169LL * (384 * 2304 + 384 * 1728 + 256 * 1728) + 9216LL * 4096 + 4096LL * 4096 +
                            4096LL * 1000;
  EXPECT_EQ(imported("alexnet.prototxt"), (Counts{60'965'224, macs}));
}

// One network in three versions of the format; its weights are ConstantOfShape nodes, its batch is a name,
// and it flattens by arithmetic on shapes. Parameters: 8 3 9 + 16 + 8 9 + 8 + 16 10 + 10.
class Onnx : public testing::TestWithParam<const char*> {};
TEST_P(Onnx, CountsWeightsOfAnyVersion) {
  EXPECT_EQ(imported(GetParam()), (Counts{482, 16LL * 16 * 8 * 27 + 16LL * 16 * 8 * 9 + 160}));
}
INSTANTIATE_TEST_SUITE_P(Versions, Onnx,
                         testing::Values("small_opset9.onnx", "small_opset13.onnx", "small_opset21.onnx"));

TEST(Onnx, ComputesActivationsAsFrameworksDo) {
  const std::string yaml = onnx_network(read_onnx(import_file("small_opset13.onnx")), {}).text;
  EXPECT_THAT(yaml, HasSubstr("type: silu"));  // x * sigmoid(x), one kernel
  EXPECT_THAT(yaml, testing::Not(HasSubstr("type: sigmoid")));
  EXPECT_THAT(yaml, testing::Not(HasSubstr("type: softmax\n")));  // the loss has it
  EXPECT_THAT(yaml, HasSubstr("\"stem/Conv\""));
  EXPECT_THAT(yaml, HasSubstr("$image_size"));
}

OnnxNode node(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
  return {.op = op, .inputs = std::move(inputs), .outputs = {output}};
}

OnnxGraph graph_of(std::vector<OnnxNode> nodes, const std::string& output) {
  OnnxGraph graph{.file = "f.onnx", .title = "t"};
  graph.inputs = {{.name = "x", .dims = {-1, 3, 8, 8}}};
  graph.outputs = {output};
  graph.nodes = std::move(nodes);
  graph.tensors["w"].dims = {4, 3, 3, 3};
  return graph;
}

// A shuffle of channels as ShuffleNet exports it: 6 channels in 2 groups of 3, exchanged, and together again.
TEST(Onnx, ShufflesChannels) {
  OnnxGraph graph = graph_of({node("Reshape", {"x", "apart"}, "a"), node("Transpose", {"a"}, "b"),
                              node("Reshape", {"b", "together"}, "c")},
                             "c");
  graph.inputs[0].dims = {-1, 6, 8, 8};
  graph.nodes[1].attributes["perm"].integers = {0, 2, 1, 3, 4};
  graph.tensors["apart"].integers = {1, 2, 3, 8, 8};
  graph.tensors["together"].integers = {1, 6, 8, 8};
  EXPECT_THAT(onnx_network(graph, {}).text,
              HasSubstr("type: transpose\n        from: \"a\"\n        order:\n          - 1\n          - "
                        "0\n          - 2\n"));
  graph.nodes[1].attributes["perm"].integers = {1, 0, 2, 3};
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)onnx_network(graph, {}); }),
              HasSubstr("Transpose of no such dimensions (1, at 'b')"));
}

// Inception v1 ends with a mean over 7 x 7 pixels of an image of 6 x 6 with one row and column of pads.
TEST(Onnx, MeanOfAWholeImageIgnoresItsPads) {
  OnnxGraph graph = graph_of({node("AveragePool", {"x"}, "y")}, "y");
  graph.inputs[0].dims = {-1, 4, 6, 6};
  graph.nodes[0].attributes["kernel_shape"].integers = {7, 7};
  graph.nodes[0].attributes["pads"].integers = {0, 0, 1, 1};
  EXPECT_THAT(onnx_network(graph, {}).text, HasSubstr("type: global_avg_pool"));
}

TEST(Onnx, ListsUnsupportedOperatorsWithTheirCounts) {
  const OnnxGraph graph =
      graph_of({node("Det", {"x"}, "a"), node("Det", {"a"}, "b"), node("NonZero", {"b"}, "c")}, "c");
  EXPECT_THAT(
      test::message_of<SpecError>([&] { (void)onnx_network(graph, {}); }),
      HasSubstr("f.onnx: operators without a layer of tbd-sim: Det (2, at 'a'), NonZero (1, at 'c')"));
}

TEST(Onnx, AsksForFunctionsInline) {
  OnnxGraph graph = graph_of({node("Linear", {"x"}, "y")}, "y");
  graph.functions = {"Linear"};
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)onnx_network(graph, {}); }),
              HasSubstr("onnx.inliner.inline_local_functions(onnx.load('f.onnx'))"));
}

TEST(Onnx, AsksForSymbolicSidesOfImages) {
  OnnxGraph graph = graph_of({node("Conv", {"x", "w"}, "y")}, "y");
  graph.inputs[0].dims = {-1, 3, -1, -1};
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)onnx_network(graph, {}); }),
              HasSubstr("--set image_size=224"));
  EXPECT_THAT(onnx_network(graph, {{"image_size", "16"}}).text, HasSubstr("image_size: 16"));
}

TEST(Onnx, SaysWhereAnExportFoldedNormsAway) {
  OnnxGraph graph = graph_of({node("Conv", {"x", "w", "b"}, "y")}, "y");
  graph.tensors["b"].dims = {4};
  EXPECT_THAT(onnx_network(graph, {}).notes,
              testing::Contains(HasSubstr("folded them into its convolutions")));
}

// Windows that begin or end at the edge, as tools round them. 3 / 2 over 6 pixels: 2 whole windows, a third
// not whole.
TEST(WindowSide, RoundsAsTheToolsDo) {
  EXPECT_EQ((WindowSide{.kernel = 3, .stride = 2}).outputs(6), 2);
  EXPECT_EQ((WindowSide{.kernel = 3, .stride = 2, .round_up = true}).outputs(6), 3);
  EXPECT_EQ((WindowSide{.kernel = 3, .stride = 2, .before = 1, .after = 1}).outputs(6), 3);
  EXPECT_EQ((WindowSide{.kernel = 3, .dilation = 2}).outputs(6), 2);  // spans 5
  EXPECT_EQ((WindowSide{.kernel = 7}).outputs(6), 0);
  EXPECT_EQ((WindowSide{.kernel = 2, .stride = 2, .before = 1, .after = 1, .round_up = true}).outputs(3), 2);
}

}  // namespace
}  // namespace tbdsim
