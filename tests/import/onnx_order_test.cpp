// Dimensions of an ONNX graph in another order than in memory, and trained tensors of element-wise operators.
#include <gmock/gmock.h>

#include "simulate/import/network_files.h"
#include "simulate/import/onnx_data.h"
#include "tests/import/onnx_graphs.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

// x, 4 x 6 for each sample, as 6 x 4, through nodes that keep that order, then a product with 4 x 5: it reads
// a copy.
std::string product_of_transposed(std::vector<OnnxNode> between, const std::string& last,
                                  std::vector<std::int64_t> perm = {0, 2, 1},
                                  std::vector<std::int64_t> dims = {-1, 4, 6}) {
  std::vector<OnnxNode> nodes = {with(node("Transpose", {"x"}, "t"), "perm", std::move(perm))};
  nodes.insert(nodes.end(), between.begin(), between.end());
  nodes.push_back(node("MatMul", {last, "w"}, "y"));
  OnnxGraph graph = graph_of(std::move(nodes), "y", std::move(dims));
  add_weight(graph, "w", {4, 5});
  return text_of(graph);
}

TEST(OnnxOrder, ASideOfOneKeepsIt) {
  const std::string text = product_of_transposed(
      {with(node("Unsqueeze", {"t"}, "u"), "axes", {1}), with(node("Squeeze", {"u"}, "v"), "axes", {1})},
      "v");
  EXPECT_THAT(text, HasSubstr("type: transpose\n"));
  EXPECT_EQ(text, product_of_transposed({}, "t"));
}

// {batch, 4, 1, 6} as {batch, 6, 1, 4}, without the 1: fewer sides than places are asked for.
TEST(OnnxOrder, ASideLessKeepsIt) {
  EXPECT_THAT(product_of_transposed({with(node("Squeeze", {"t"}, "v"), "axes", {2})}, "v", {0, 3, 2, 1},
                                    {-1, 4, 1, 6}),
              HasSubstr("type: transpose\n"));
  const OnnxData data{.layer = {}, .sides = {{.size = 6}, {.size = 4}}, .places = {1, 2, 0}};
  EXPECT_TRUE(is_in_order(data));  // of sides that it has
}

TEST(OnnxOrder, ALayerThatKeepsTheShapeKeepsIt) {
  EXPECT_THAT(product_of_transposed({node("Relu", {"t"}, "r")}, "r"), HasSubstr("type: transpose\n"));
}

TEST(OnnxOrder, APartKeepsIt) {
  OnnxNode split = with(node("Split", {"t"}, "a"), "axis", {1});
  split.outputs.emplace_back("b");
  const std::string text = product_of_transposed({split}, "a");
  // The half along 6 of 4 x 6 in memory, copied as 3 x 4.
  EXPECT_THAT(
      text, HasSubstr("type: slice\n        from: \"data\"\n        dims:\n          - 4\n          - 3\n"));
  EXPECT_THAT(text, HasSubstr("type: transpose\n"));
}

// A softmax over the 4 positions of x: 6 rows of 4, as copies before and behind it make them.
TEST(OnnxOrder, ASoftmaxOverAnotherSideReadsACopy) {
  const std::string text =
      text_of(graph_of({with(node("Softmax", {"x"}, "s"), "axis", {1}), node("Relu", {"s"}, "y")}, "y"));
  EXPECT_THAT(text, HasSubstr("type: transpose\n        from: \"data\"\n"));
  EXPECT_THAT(text, HasSubstr("- name: \"s\"\n        type: softmax\n        from: \"s/in\"\n"));
  EXPECT_THAT(text, HasSubstr("- name: \"s/out\"\n        type: transpose\n        from: \"s\"\n"));
  const std::string last =
      text_of(graph_of({with(node("Softmax", {"x"}, "s"), "axis", {2}), node("Relu", {"s"}, "y")}, "y"));
  EXPECT_THAT(last, Not(HasSubstr("transpose")));
}

TEST(OnnxWeights, AVectorThatIsSubtractedHasItsElements) {
  for (const char* op : {"Sub", "Div", "Pow", "PRelu"}) {
    OnnxGraph graph = graph_of({node(op, {"x", "w"}, "y")}, "y");
    add_weight(graph, "w", {6});
    const std::string text = text_of(graph);
    EXPECT_THAT(text, HasSubstr("trained:\n          - 1\n          - 6\n")) << op;
    EXPECT_THAT(text, Not(HasSubstr("elements: 0"))) << op;
  }
}

// One factor for all, and one for each channel of an image: the second product shares it.
TEST(OnnxWeights, AScaleThatIsUsedTwiceCountsOnce) {
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{1}, {3, 1, 1}}) {
    OnnxGraph graph =
        graph_of({node("Mul", {"x", "w"}, "a"), node("Mul", {"a", "w"}, "y")}, "y", {-1, 3, 8, 8});
    add_weight(graph, "w", dims);
    const std::string text = text_of(graph);
    EXPECT_THAT(text, HasSubstr("- name: \"a\"\n        type: layer_scale\n"));
    EXPECT_THAT(text, HasSubstr("- name: \"y\"\n        type: layer_scale\n"));
    EXPECT_THAT(text, HasSubstr("tied_to: \"a\"\n"));
  }
}

}  // namespace
}  // namespace tbdsim
