// Graphs of ONNX that no exporter writes: an error that names the node, no crash, little time and memory.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/import/network_files.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/onnx_graphs.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::HasSubstr;

std::string error_of(const OnnxGraph& graph) {
  return test::message_of<SpecError>([&] { (void)onnx_network(graph, {}); });
}

// {x, then so many nodes of one operator, each of which reads the one before as both inputs}.
std::vector<OnnxNode> doubled(const OnnxNode& first, int count) {
  std::vector<OnnxNode> nodes;
  for (int i = 0; i < count; ++i) {
    OnnxNode next = first;
    if (i > 0) next.inputs.assign(first.inputs.size(), nodes.back().outputs[0]);
    next.outputs[0] = first.outputs[0] + std::to_string(i);
    nodes.push_back(std::move(next));
  }
  return nodes;
}

TEST(HostileOnnx, AProductOfTwoWeightsWithAComputedTermIsRefused) {
  OnnxGraph graph = graph_of({node("Gemm", {"p", "q", "x"}, "y")}, "y");
  add_weight(graph, "p", {4, 4});
  add_weight(graph, "q", {4, 4});
  EXPECT_THAT(error_of(graph), HasSubstr("Gemm (1, at 'y')"));
}

// No rows of x, then as one side: nothing divides by its 0 elements.
TEST(HostileOnnx, ASideOfNothingIsRefused) {
  OnnxGraph graph = graph_of(
      {with(node("Gather", {"x", "none"}, "g"), "axis", {1}), node("Reshape", {"g", "flat"}, "y")}, "y");
  add_whole(graph, "none", {});
  add_whole(graph, "flat", {-1});
  EXPECT_THAT(error_of(graph), HasSubstr("Gather to sides that cannot be (1, at 'g')"));
}

TEST(HostileOnnx, ATableOfNoFeaturesIsRefused) {
  OnnxGraph graph =
      graph_of({node("Gather", {"table", "x"}, "g"), node("Reshape", {"g", "flat"}, "y")}, "y", {-1, 4});
  graph.inputs[0].real = false;
  add_weight(graph, "table", {9, 0});
  add_whole(graph, "flat", {-1});
  EXPECT_THAT(error_of(graph), HasSubstr("Gather to sides that cannot be (1, at 'g')"));
}

// A sequence is no tensor: only SequenceAt reads one, and of one part.
TEST(HostileOnnx, ASequenceIsReadByItsPartsAlone) {
  OnnxGraph graph = graph_of(
      {with(node("SplitToSequence", {"x", "size"}, "q"), "axis", {2}), node("Relu", {"q"}, "y")}, "y");
  graph.tensors["size"] = {.dims = {}, .integers = {1}, .numbers = {}, .real = false};
  graph.tensors["third"] = {.dims = {}, .integers = {2}, .numbers = {}, .real = false};
  EXPECT_THAT(error_of(graph), HasSubstr("Relu of a sequence (1, at 'y')"));
  graph.outputs = {"q"};
  EXPECT_THAT(error_of(graph), HasSubstr("SplitToSequence as the output (1, at 'q')"));
  graph.outputs = {"y"};
  graph.nodes[1] = node("SequenceAt", {"q", "third"}, "y");
  graph.inputs[0].dims = {-1, 4, 65};
  EXPECT_THAT(error_of(graph), HasSubstr("SequenceAt of a sequence of more than 64 parts"));
  graph.inputs[0].dims = {-1, 4, 2};
  EXPECT_THAT(error_of(graph), HasSubstr("SequenceAt of no such part"));
  graph.inputs[0].dims = {-1, 4, 6};
  add_whole(graph, "size", {2, 2, 1});
  EXPECT_THAT(error_of(graph), HasSubstr("SequenceAt of parts that are not the whole"));
}

// 10^18 and 10^24 elements of a sample: layers that see sides as one have no number for them.
TEST(HostileOnnx, SidesThatAreTooLargeTogetherAreRefused) {
  constexpr std::int64_t kSide = 1'000'000;
  OnnxGraph norm = graph_of({node("BatchNormalization", {"x"}, "y")}, "y", {-1, kSide, kSide, kSide, kSide});
  EXPECT_THAT(error_of(norm), HasSubstr("BatchNormalization of too many elements (1, at 'y')"));
  OnnxGraph softmax = graph_of({with(node("Softmax", {"x"}, "s"), "axis", {1}), node("Relu", {"s"}, "y")},
                               "y", {-1, kSide, kSide, kSide});
  softmax.opset = 11;
  EXPECT_THAT(error_of(softmax), HasSubstr("Softmax of too many elements (1, at 's')"));
}

// 40 doublings of 4 positions: 4 x 2^40 is above the largest side. 4 x 2^70 is above any number.
TEST(HostileOnnx, SidesThatDoubleAreRefused) {
  EXPECT_THAT(error_of(graph_of(doubled(with(node("Concat", {"x", "x"}, "c"), "axis", {1}), 70), "c69")),
              HasSubstr("Concat to sides that cannot be"));
}

// Each Unsqueeze without axes would double the sides: 24 of them have 2^24.
TEST(HostileOnnx, AnUnsqueezeWithoutAxesIsRefused) {
  OnnxGraph indices = graph_of(doubled(node("Unsqueeze", {"x"}, "u"), 24), "y", {-1, 4});
  indices.inputs[0].real = false;
  indices.nodes.push_back(node("Gather", {"table", "u23"}, "y"));
  add_weight(indices, "table", {9, 6});
  EXPECT_THAT(error_of(indices), HasSubstr("Unsqueeze by sides that do not fit (24, at 'u0')"));

  OnnxGraph constants = graph_of(doubled(node("Unsqueeze", {"k"}, "u"), 24), "y");
  constants.nodes.push_back(node("Add", {"x", "u23"}, "y"));
  add_whole(constants, "k", {1});
  EXPECT_THAT(error_of(constants), HasSubstr("Unsqueeze of constants (24, at 'u0')"));
}

TEST(HostileOnnx, ATensorOfMoreThan64SidesIsRefused) {
  std::vector<OnnxNode> nodes = doubled(with(node("Unsqueeze", {"x"}, "u"), "axes", {1}), 100);
  EXPECT_THAT(error_of(graph_of(std::move(nodes), "u99")),
              HasSubstr("Unsqueeze by sides that do not fit (39, at 'u61')"));  // 3 + 61 sides are 64
}

// 4096 numbers, doubled 40 times: their values are followed up to 4096, and the sides beyond.
TEST(HostileOnnx, ConstantsThatDoubleHaveNoValues) {
  OnnxGraph graph = graph_of(doubled(with(node("Concat", {"k", "k"}, "c"), "axis", {0}), 40), "y");
  graph.nodes.push_back(node("Add", {"x", "c39"}, "y"));
  add_whole(graph, "k", std::vector<std::int64_t>(4'096, 1));
  EXPECT_THAT(error_of(graph), HasSubstr("Add of tensors of several shapes (1, at 'y')"));
}

// 4096 numbers 200,000 times over in one node would be 6.6 GB.
TEST(HostileOnnx, AConstantOfVeryManyTermsHasNoValues) {
  OnnxGraph graph =
      graph_of({node("Max", std::vector<std::string>(200'000, "k"), "m"), node("Add", {"x", "m"}, "y")}, "y");
  add_whole(graph, "k", std::vector<std::int64_t>(4'096, 1));
  EXPECT_THAT(error_of(graph), HasSubstr("Add of tensors of several shapes (1, at 'y')"));
}

// 100,000 layers of one name: the numbers behind it are not searched from 2 on for each.
TEST(HostileOnnx, ManyLayersOfOneNameTakeLittleTime) {
  std::vector<OnnxNode> nodes = doubled(node("Relu", {"x"}, "r"), 90'000);
  for (OnnxNode& one : nodes) one.name = "same";
  const std::string text = test::text_of(graph_of(std::move(nodes), "r89999"));
  EXPECT_THAT(text, HasSubstr("name: \"same_90000\""));
}

// a reads b, which is made of a.
TEST(HostileOnnx, ACycleIsRefused) {
  EXPECT_THAT(error_of(graph_of(
                  {node("Add", {"b", "x"}, "a"), node("Cast", {"a"}, "b"), node("Relu", {"a"}, "y")}, "y")),
              HasSubstr("Add with an unknown input (1, at 'a')"));
}

TEST(HostileOnnx, AMissingInputIsRefused) {
  EXPECT_THAT(error_of(graph_of({node("Mul", {"x", "gone"}, "y")}, "y")),
              HasSubstr("Mul with an unknown input (1, at 'y')"));
}

// x has 4 x 6 for each sample; the errors say what would have fitted.
TEST(HostileOnnx, WeightsThatDoNotFitSayWhatWould) {
  OnnxGraph product = graph_of({node("MatMul", {"x", "w"}, "y")}, "y");
  add_weight(product, "w", {5, 7});
  EXPECT_THAT(error_of(product),
              HasSubstr("y: a weight for 5 features; expected one for 6, as its input has"));

  OnnxGraph image = graph_of({node("Conv", {"x", "w"}, "y")}, "y", {-1, 3, 8, 8});
  add_weight(image, "w", {4, 5, 1, 1});
  EXPECT_THAT(error_of(image),
              HasSubstr("y: a weight of 5 channels in 1 group; expected 3 in all, as its input has"));
}

}  // namespace
}  // namespace tbdsim
