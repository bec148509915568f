// Graphs of ONNX as exporters write them: layers in several nodes, arithmetic on shapes, the batch in any
// place.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/import/network_files.h"
#include "simulate/import/onnx_data.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/onnx_graphs.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

// (x - mean) / sqrt(mean((x - mean)^2) + eps) times a weight, plus a bias: what opsets below 17 have.
TEST(OnnxPatterns, NormOfNineNodesIsOneLayer) {
  OnnxGraph graph =
      graph_of({with(node("ReduceMean", {"x"}, "mean"), "axes", {-1}), node("Sub", {"x", "mean"}, "centred"),
                node("Pow", {"centred", "two"}, "square"),
                with(node("ReduceMean", {"square"}, "variance"), "axes", {-1}),
                node("Add", {"variance", "eps"}, "above"), node("Sqrt", {"above"}, "root"),
                node("Div", {"centred", "root"}, "unit"), node("Mul", {"unit", "gamma"}, "scaled"),
                node("Add", {"scaled", "beta"}, "y")},
               "y");
  add_number(graph, "two", 2);
  add_number(graph, "eps", 1e-5);
  add_weight(graph, "gamma", {6});
  add_weight(graph, "beta", {6});
  const std::string text = text_of(graph);
  EXPECT_THAT(
      text,
      HasSubstr("- name: \"y\"\n        type: layer_norm\n        from: \"data\"\n      - name: \"loss\""));
  EXPECT_THAT(text, Not(HasSubstr("reduce")));
}

// x rsqrt(mean(x^2) + eps) gamma.
TEST(OnnxPatterns, RootMeanSquareNormIsOneLayer) {
  OnnxGraph graph = graph_of(
      {node("Pow", {"x", "two"}, "square"), with(node("ReduceMean", {"square"}, "mean"), "axes", {-1}),
       node("Add", {"mean", "eps"}, "above"), node("Sqrt", {"above"}, "root"),
       node("Reciprocal", {"root"}, "inverse"), node("Mul", {"x", "inverse"}, "unit"),
       node("Mul", {"gamma", "unit"}, "y")},
      "y");
  add_number(graph, "two", 2);
  add_number(graph, "eps", 1e-6);
  add_weight(graph, "gamma", {6});
  EXPECT_THAT(
      text_of(graph),
      HasSubstr("- name: \"y\"\n        type: rms_norm\n        from: \"data\"\n      - name: \"loss\""));
}

TEST(OnnxPatterns, GeluOfFiveNodesIsOneLayer) {
  OnnxGraph graph =
      graph_of({node("Div", {"x", "root2"}, "a"), node("Erf", {"a"}, "b"), node("Add", {"b", "one"}, "c"),
                node("Mul", {"x", "c"}, "d"), node("Mul", {"d", "half"}, "y")},
               "y");
  add_number(graph, "root2", 1.414);
  add_number(graph, "one", 1);
  add_number(graph, "half", 0.5);
  const std::string text = text_of(graph);
  EXPECT_THAT(text, HasSubstr("type: gelu\n        from: \"data\"\n      - name: \"loss\""));
}

// 4 positions of 6 features: 2 heads of 3. scaled_dot_product_attention scales queries and keys, each by the
// root.
TEST(OnnxPatterns, AttentionThatScalesBothFactorsIsOneLayer) {
  OnnxGraph graph =
      graph_of({node("Reshape", {"x", "apart"}, "split"),
                with(node("Transpose", {"split"}, "q"), "perm", {0, 2, 1, 3}),
                with(node("Transpose", {"split"}, "k"), "perm", {0, 2, 3, 1}), node("Mul", {"q", "s"}, "qs"),
                node("Mul", {"k", "s"}, "ks"), node("MatMul", {"qs", "ks"}, "scores"),
                node("Softmax", {"scores"}, "p"), node("MatMul", {"p", "q"}, "o"),
                with(node("Transpose", {"o"}, "back"), "perm", {0, 2, 1, 3}),
                node("Reshape", {"back", "together"}, "y")},
               "y");
  add_number(graph, "s", 0.76);
  add_whole(graph, "apart", {0, 4, 2, 3});
  add_whole(graph, "together", {0, 4, 6});
  const std::string text = text_of(graph);
  EXPECT_THAT(text, HasSubstr("type: attention\n"));
  EXPECT_THAT(text, HasSubstr("heads: 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("type: transpose")));  // the kernel reads heads as they lie
  EXPECT_THAT(text, Not(HasSubstr("type: softmax\n")));
}

// Code that computes attention step by step scales once, and its kernels are those steps.
TEST(OnnxPatterns, AttentionStepByStepStaysSo) {
  OnnxGraph graph = graph_of({node("Reshape", {"x", "apart"}, "split"),
                              with(node("Transpose", {"split"}, "q"), "perm", {0, 2, 1, 3}),
                              with(node("Transpose", {"split"}, "k"), "perm", {0, 2, 3, 1}),
                              node("MatMul", {"q", "k"}, "scores"), node("Div", {"scores", "s"}, "scaled"),
                              node("Softmax", {"scaled"}, "p"), node("MatMul", {"p", "q"}, "o")},
                             "o");
  add_number(graph, "s", 1.7);
  add_whole(graph, "apart", {0, 4, 2, 3});
  const std::string text = text_of(graph);
  EXPECT_THAT(text, HasSubstr("type: softmax\n"));
  EXPECT_THAT(text, HasSubstr("type: attention_context\n"));
  EXPECT_THAT(text, HasSubstr("type: transpose\n"));  // batched products need whole heads
}

// x.view(x.shape[0], -1): the batch of 7919 that stands for a name is taken out of the shape, joined with -1.
TEST(OnnxShapes, ArithmeticOnShapesIsFolded) {
  OnnxGraph graph = graph_of({node("Shape", {"x"}, "shape"), node("Gather", {"shape", "zero"}, "batch"),
                              node("Unsqueeze", {"batch", "axis"}, "one"),
                              node("Concat", {"one", "rest"}, "to"), node("Reshape", {"x", "to"}, "y")},
                             "y");
  graph.tensors["zero"] = {.dims = {}, .integers = {0}, .numbers = {}, .real = false};
  add_whole(graph, "axis", {0});
  add_whole(graph, "rest", {-1});
  EXPECT_THAT(text_of(graph), HasSubstr("dims:\n          - 24\n"));
}

// Windows of 2 of 4 positions, as many times the batch, and back: no element moves.
TEST(OnnxShapes, WindowsLieInTheBatch) {
  OnnxGraph graph = graph_of({node("Reshape", {"x", "windows"}, "w"), node("Relu", {"w"}, "r"),
                              node("Reshape", {"r", "whole"}, "y")},
                             "y");
  add_whole(graph, "windows", {-1, 2, 6});
  add_whole(graph, "whole", {-1, 4, 6});
  const std::string text = text_of(graph);
  EXPECT_THAT(text, HasSubstr("dims:\n          - 2\n          - 2\n          - 6\n"));
  EXPECT_THAT(text, HasSubstr("dims:\n          - 4\n          - 6\n"));
}

// {positions, batch, features} as one side and apart again: 4 positions lie outside of the batch.
TEST(OnnxShapes, TheBatchMayLieInside) {
  const OnnxSides sides = {{.size = 4}, {.size = 1, .batch = true}, {.size = 6}};
  const auto joined = reshaped_sides(sides, {-1, 6}, 8);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->at(0).size, 4);
  EXPECT_EQ(joined->at(0).outer, 4);
  const auto apart = reshaped_sides(*joined, {4, 8, 6}, 8);
  ASSERT_TRUE(apart);
  EXPECT_EQ(*apart, sides);
  EXPECT_FALSE(reshaped_sides(sides, {5, -1}, 8));
}

// A table of 10 words of 6 features, its rows for indices that are the input, and its transpose as the last
// product.
TEST(OnnxWeights, ATableThatIsUsedTwiceCountsOnce) {
  OnnxGraph graph =
      graph_of({node("Gather", {"table", "x"}, "words"),
                with(node("Transpose", {"table"}, "t"), "perm", {1, 0}), node("MatMul", {"words", "t"}, "y")},
               "y", {-1, 4});
  graph.inputs[0].real = false;
  add_weight(graph, "table", {10, 6});
  const std::string text = text_of(graph);
  EXPECT_THAT(text,
              HasSubstr("type: embedding\n        from: \"data\"\n        words: 10\n        outputs: 6\n"));
  EXPECT_THAT(text, HasSubstr("tied_to: \"words\"\n"));
}

TEST(OnnxInputs, SidesWithNamesAreAskedForByThem) {
  OnnxGraph graph = graph_of({node("Relu", {"x"}, "y")}, "y", {-1, -1, 6});
  graph.inputs[0].symbols = {"batch", "length", ""};
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)onnx_network(graph, {}); }),
              HasSubstr("side 2 of the input 'x' is named 'length'; expected its size, as --set length=128"));
  EXPECT_THAT(onnx_network(graph, {{"length", "5"}}).text, HasSubstr("- 5\n"));
}

TEST(OnnxErrors, NameOperatorAndNode) {
  OnnxGraph graph = graph_of({node("GridSample", {"x"}, "a"), node("GridSample", {"a"}, "y")}, "y");
  graph.nodes[0].name = "/warp/GridSample";
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)onnx_network(graph, {}); }),
              HasSubstr("GridSample (2, at '/warp/GridSample')"));
}

}  // namespace
}  // namespace tbdsim
