// What exporters do to a network: batch norms folded away, weights that are used twice, masks, old operators.
#include <gmock/gmock.h>

#include "hwspecs/base/error.h"
#include "simulate/import/network_files.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/onnx_graphs.h"

namespace tbdsim {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Before opset 13 over all of a sample's 4 x 6 elements, from then on over the last side.
TEST(OnnxExports, ASoftmaxOfOldOpsetsGoesOverAllSidesFromItsAxisOn) {
  OnnxGraph graph = graph_of({node("Softmax", {"x"}, "s"), node("Relu", {"s"}, "y")}, "y");
  EXPECT_THAT(text_of(graph), Not(HasSubstr("- 24\n")));
  graph.opset = 13;
  EXPECT_THAT(text_of(graph), Not(HasSubstr("- 24\n")));
  graph.opset = 12;
  EXPECT_THAT(text_of(graph),
              HasSubstr("type: reshape\n        from: \"data\"\n        dims:\n          - 24\n"));
  graph.nodes[0] = with(node("Softmax", {"x"}, "s"), "axis", {2});
  EXPECT_THAT(text_of(graph), Not(HasSubstr("- 24\n")));
}

// x as 6 x 4 times a number or plus itself lies as x does; what follows reads a copy.
TEST(OnnxExports, ElementwiseOperatorsKeepTheOrderOfAView) {
  for (const std::vector<std::string>& inputs : {std::vector<std::string>{"t", "s"}, {"t", "t"}}) {
    OnnxGraph graph = graph_of({with(node("Transpose", {"x"}, "t"), "perm", {0, 2, 1}),
                                node("Mul", inputs, "m"), node("MatMul", {"m", "w"}, "y")},
                               "y");
    add_number(graph, "s", 0.5);
    add_weight(graph, "w", {4, 5});
    EXPECT_THAT(text_of(graph), HasSubstr("type: transpose\n        from: \"m\"\n"));
  }
}

// One of 6 rows of x as 6 x 4: in memory a column of 4 x 6.
TEST(OnnxExports, OneRowOfAViewIsAColumn) {
  OnnxGraph graph =
      graph_of({with(node("Transpose", {"x"}, "t"), "perm", {0, 2, 1}),
                with(node("Gather", {"t", "first"}, "g"), "axis", {1}), node("MatMul", {"g", "w"}, "y")},
               "y");
  graph.tensors["first"] = {.dims = {}, .integers = {0}, .numbers = {}, .real = false};
  add_weight(graph, "w", {4, 5});
  EXPECT_THAT(
      text_of(graph),
      HasSubstr("type: slice\n        from: \"data\"\n        dims:\n          - 4\n          - 1\n"));
}

// A block that runs twice: its weight and bias are those of the first run.
TEST(OnnxExports, ALayerThatRunsTwiceHasItsParametersOnce) {
  OnnxGraph graph = graph_of({node("MatMul", {"x", "w"}, "a"), node("Add", {"b", "a"}, "c"),
                              node("MatMul", {"c", "w"}, "d"), node("Add", {"b", "d"}, "y")},
                             "y");
  add_weight(graph, "w", {6, 6});
  add_weight(graph, "b", {6});
  const std::string text = text_of(graph);
  EXPECT_EQ(count_of(text, "type: fully_connected"), 2);
  EXPECT_EQ(count_of(text, "tied_to: \"c\""), 1);
  EXPECT_THAT(text, Not(HasSubstr("bias")));
}

TEST(OnnxExports, AConvolutionThatRunsTwiceHasItsParametersOnce) {
  OnnxGraph graph =
      graph_of({node("Conv", {"x", "w", "b"}, "a"), node("Conv", {"a", "w", "b"}, "y")}, "y", {-1, 3, 8, 8});
  add_weight(graph, "w", {3, 3, 1, 1});
  add_weight(graph, "b", {3});
  EXPECT_EQ(count_of(text_of(graph), "tied_to: \"a\""), 1);
  graph.nodes[1].inputs[2] = "b2";  // a bias of its own: no layer shares the weight alone
  add_weight(graph, "b2", {3});
  EXPECT_EQ(count_of(text_of(graph), "tied_to"), 0);
}

// The names that exporters for inference give to what they made of a convolution and its norm.
TEST(OnnxExports, AFoldedBatchNormIsALayerAgain) {
  struct Names {
    std::string weight, bias;
    int norms;
  };
  for (const Names& names :
       {Names{"stem.weight", "stem.weight_bias", 1}, Names{"onnx::Conv_7", "onnx::Conv_8", 1},
        Names{"stem.weight", "stem.bias", 0}, Names{"onnx::Conv_7", "stem.bias", 0}}) {
    OnnxGraph graph = graph_of({node("Conv", {"x", names.weight, names.bias}, "y")}, "y", {-1, 3, 8, 8});
    add_weight(graph, names.weight, {4, 3, 3, 3});
    add_weight(graph, names.bias, {4});
    const ImportedFile file = onnx_network(graph, {});
    EXPECT_EQ(count_of(file.text, "type: batch_norm"), names.norms) << names.bias;
    EXPECT_EQ(count_of(file.text, "bias: true"), 1 - names.norms) << names.bias;
  }
}

// Zeros that are computed: torch.onnx.export(..., dynamo=True, optimize=False) writes them for a convolution
// without a bias.
TEST(OnnxExports, ComputedZerosAreNoBias) {
  OnnxGraph graph =
      graph_of({with(node("Shape", {"w"}, "sides"), "end", {1}), node("CastLike", {"zero", "x"}, "like"),
                node("Expand", {"like", "sides"}, "zeros"), node("Conv", {"x", "w", "zeros"}, "y")},
               "y", {-1, 3, 8, 8});
  add_weight(graph, "w", {4, 3, 3, 3});
  add_number(graph, "zero", 0);
  EXPECT_THAT(text_of(graph), Not(HasSubstr("bias: true")));
}

// Two runs of one convolution and its norm: 2 x 3 x 3 weights, 3 scales and 3 shifts in all, once each.
TEST(OnnxExports, AFoldedBatchNormThatRunsTwiceHasItsParametersOnce) {
  OnnxGraph graph = graph_of({node("Conv", {"x", "w", "w_bias"}, "a"), node("Relu", {"a"}, "r"),
                              node("Conv", {"r", "w", "w_bias"}, "y")},
                             "y", {-1, 3, 8, 8});
  add_weight(graph, "w", {3, 3, 1, 1});
  add_weight(graph, "w_bias", {3});
  const std::string text = text_of(graph);
  EXPECT_EQ(count_of(text, "type: batch_norm"), 2);
  EXPECT_EQ(count_of(text, "tied_to: \"a\"\n"), 1);
  EXPECT_EQ(count_of(text, "tied_to: \"a/norm\"\n"), 1);
  for (const std::size_t i :
       {0U, 2U}) {  // equal biases are stored once, as zeros are: two norms all the same
    graph.nodes[i].inputs = {graph.nodes[i].inputs[0], "onnx::Conv_" + std::to_string(i), "onnx::Conv_1"};
    add_weight(graph, graph.nodes[i].inputs[1], {3, 3, 1, 1});
  }
  add_weight(graph, "onnx::Conv_1", {3});
  EXPECT_EQ(count_of(text_of(graph), "tied_to"), 0);
}

// Norms of volumes and of several images of a sample, which are layers over images.
TEST(OnnxExports, AFoldedBatchNormOfOtherThanImagesIsALayerAgain) {
  for (const bool folded : {true, false}) {
    const std::string bias = folded ? "onnx::Conv_2" : "bias";
    OnnxGraph cube =
        graph_of({with(node("Conv", {"x", "onnx::Conv_1", bias}, "y"), "pads", {1, 1, 1, 1, 1, 1})}, "y",
                 {-1, 3, 4, 8, 8});
    add_weight(cube, "onnx::Conv_1", {5, 3, 3, 3, 3});
    OnnxGraph windows =
        graph_of({node("Reshape", {"x", "apart"}, "w"), node("Conv", {"w", "onnx::Conv_1", bias}, "y")}, "y",
                 {-1, 2, 3, 8, 8});
    add_whole(windows, "apart", {-1, 3, 8, 8});
    add_weight(windows, "onnx::Conv_1", {5, 3, 1, 1});
    for (OnnxGraph* graph : {&cube, &windows}) {
      add_weight(*graph, bias, {5});
      const ImportedFile file = onnx_network(*graph, {});
      EXPECT_EQ(count_of(file.text, "type: batch_norm"), folded ? 1 : 0) << file.text;
      EXPECT_EQ(count_of(file.text, "bias: true"), folded ? 0 : 1) << file.text;
      EXPECT_THAT(file.notes,
                  testing::Contains(HasSubstr(folded ? "1 batch norms that the export folded"
                                                     : "no batch norm: if the network has some")));
    }
  }
}

// New weights have a bias of 0 behind the fold, which the dynamo exporter leaves out: the output's name
// tells.
TEST(OnnxExports, AFoldedBatchNormWithoutABiasIsALayerAgain) {
  for (const std::string output : {"getitem", "getitem_3", "conv2d"}) {
    OnnxGraph graph = graph_of({node("Conv", {"x", "conv1.weight"}, output), node("Relu", {output}, "y")},
                               "y", {-1, 3, 8, 8});
    add_weight(graph, "conv1.weight", {5, 3, 1, 1});
    EXPECT_EQ(count_of(text_of(graph), "type: batch_norm"), output == "conv2d" ? 0 : 1) << output;
  }
}

TEST(OnnxExports, AQuantizedNetworkIsRefused) {
  OnnxGraph graph = graph_of({node("QuantizeLinear", {"x", "s", "z"}, "q"),
                              node("DequantizeLinear", {"q", "s", "z"}, "d"), node("Relu", {"d"}, "y")},
                             "y", {-1, 3, 8, 8});
  EXPECT_THAT(test::message_of<SpecError>([&] { (void)onnx_network(graph, {}); }),
              HasSubstr("is quantized for inference (QuantizeLinear); expected the network before that"));
}

// y = x p + x q: the sum is a layer of two products.
TEST(OnnxExports, ATermOfAProductThatIsComputedIsAdded) {
  OnnxGraph graph =
      graph_of({node("Gemm", {"x", "p"}, "a"), node("Gemm", {"x", "q", "a"}, "y")}, "y", {-1, 6});
  add_weight(graph, "p", {6, 5});
  add_weight(graph, "q", {6, 5});
  const std::string text = text_of(graph);
  EXPECT_EQ(count_of(text, "type: fully_connected"), 2);
  EXPECT_EQ(count_of(text, "type: add\n"), 1);
}

// Parts of 4 of 9 features: 4, 4 and 1, which are 9 together.
TEST(OnnxExports, PartsOfASequenceSumToTheWhole) {
  OnnxGraph graph =
      graph_of({with(node("SplitToSequence", {"x", "size"}, "parts"), "axis", {1}),
                node("SequenceAt", {"parts", "n0"}, "p0"), node("SequenceAt", {"parts", "n1"}, "p1"),
                node("SequenceAt", {"parts", "n2"}, "p2"),
                with(node("Concat", {"p0", "p1", "p2"}, "c"), "axis", {1}), node("MatMul", {"c", "w"}, "y")},
               "y", {-1, 9});
  const auto number = [&](const std::string& name, std::int64_t value) {
    graph.tensors[name] = {.dims = {}, .integers = {value}, .numbers = {}, .real = false};
  };
  number("size", 4);
  for (int i = 0; i < 3; ++i) number("n" + std::to_string(i), i);
  add_weight(graph, "w", {9, 5});
  const std::string text = text_of(graph);
  EXPECT_EQ(count_of(text, "type: slice"), 3);
  EXPECT_EQ(count_of(text, "dims:\n          - 4\n"), 2);
  EXPECT_EQ(count_of(text, "dims:\n          - 1\n"), 1);
}

// Parts of 2 and 4 of 6 features, of which the second is read.
TEST(OnnxExports, APartOfASequenceIsASlice) {
  OnnxGraph graph = graph_of({with(node("SplitToSequence", {"x", "sizes"}, "parts"), "axis", {2}),
                              node("SequenceAt", {"parts", "second"}, "p"), node("Relu", {"p"}, "y")},
                             "y");
  add_whole(graph, "sizes", {2, 4});
  graph.tensors["second"] = {.dims = {}, .integers = {1}, .numbers = {}, .real = false};
  const std::string text = text_of(graph);
  EXPECT_EQ(count_of(text, "type: slice"), 1);
  EXPECT_THAT(text, HasSubstr("dims:\n          - 4\n          - 4\n"));
}

// {batch, 4, 6}: 4 channels, as an image of one row; windows of images, as rows of one.
TEST(OnnxExports, ABatchNormGoesOverChannels) {
  OnnxGraph graph = graph_of({node("BatchNormalization", {"x", "w", "b", "m", "v"}, "y")}, "y");
  for (const char* name : {"w", "b", "m", "v"}) add_weight(graph, name, {4});
  EXPECT_THAT(text_of(graph), HasSubstr("dims:\n          - 4\n          - 1\n          - 6\n"));
}

// 4 positions of 6 features, 2 heads of 3, and a mask that is added to the scores.
OnnxGraph masked_attention(std::vector<OnnxNode> before) {
  OnnxGraph graph = graph_of(std::move(before), "y");
  for (const OnnxNode& one : std::vector<OnnxNode>{
           node("Reshape", {"x", "apart"}, "split"),
           with(node("Transpose", {"split"}, "q"), "perm", {0, 2, 1, 3}),
           with(node("Transpose", {"split"}, "k"), "perm", {0, 2, 3, 1}), node("Mul", {"q", "s"}, "qs"),
           node("Mul", {"k", "s"}, "ks"), node("MatMul", {"qs", "ks"}, "scores"),
           node("Add", {"scores", "mask"}, "masked"), with(node("Softmax", {"masked"}, "p"), "axis", {-1}),
           node("MatMul", {"p", "q"}, "y")})
    graph.nodes.push_back(one);
  add_whole(graph, "apart", {-1, 4, 2, 3});
  add_number(graph, "s", 0.76);
  return graph;
}

TEST(OnnxExports, AMaskOfWhatComesAfterIsCausal) {
  OnnxGraph known = masked_attention({});
  known.tensors["mask"] = {
      .dims = {4, 4}, .integers = {}, .numbers = {}, .computed = true, .lower_triangle = true};
  EXPECT_THAT(text_of(known), HasSubstr("causal: true\n"));
  known.tensors["mask"].lower_triangle = false;
  EXPECT_THAT(text_of(known), HasSubstr("type: attention\n"));
  EXPECT_THAT(text_of(known), Not(HasSubstr("causal")));

  OnnxGraph cut =
      masked_attention({node("Trilu", {"ones"}, "lower"), node("Where", {"lower", "zero", "low"}, "mask")});
  cut.tensors["ones"] = {
      .dims = {4, 4}, .integers = std::vector<std::int64_t>(16, 1), .numbers = {}, .real = false};
  add_number(cut, "zero", 0);
  add_number(cut, "low", -1e9);
  EXPECT_THAT(text_of(cut), HasSubstr("causal: true\n"));
}

// Keys 0 to 3 against queries 0 to 3; against the same of a length, each query sees the same keys.
TEST(OnnxExports, AMaskThatComparesPositionsIsCausal) {
  for (const std::vector<std::int64_t>& other : {std::vector<std::int64_t>{0, 1, 2, 3}, {3}}) {
    OnnxGraph graph = masked_attention(
        {node("LessOrEqual", {"keys", "queries"}, "seen"), node("Where", {"seen", "zero", "low"}, "mask")});
    graph.tensors["keys"] = {.dims = {1, 4}, .integers = {0, 1, 2, 3}, .numbers = {}, .real = false};
    graph.tensors["queries"] = {
        .dims = {std::ssize(other), 1}, .integers = other, .numbers = {}, .real = false};
    add_number(graph, "zero", 0);
    add_number(graph, "low", -1e9);
    EXPECT_EQ(count_of(text_of(graph), "causal: true"), other.size() > 1 ? 1 : 0);
  }
}

// Keys up to two before and behind each query, and the same keys whichever comes first: neither hides all
// that comes after.
TEST(OnnxExports, AMaskOfANeighbourhoodIsNotCausal) {
  const auto attention = [](const char* second, std::int64_t before, std::int64_t behind) {
    OnnxGraph graph =
        masked_attention({node("LessOrEqual", {"keys", "last"}, "a"), node(second, {"keys", "first"}, "b"),
                          node("And", {"a", "b"}, "seen"), node("Where", {"seen", "zero", "low"}, "mask")});
    const auto range = [&](const char* name, std::vector<std::int64_t> dims, std::int64_t start) {
      graph.tensors[name] = {.dims = std::move(dims), .integers = {}, .numbers = {}, .real = false};
      for (std::int64_t i = 0; i < 4; ++i) graph.tensors[name].integers.push_back(start + i);
    };
    range("keys", {1, 4}, 0);
    range("last", {4, 1}, behind);
    range("first", {4, 1}, -before);
    add_number(graph, "zero", 0);
    add_number(graph, "low", -1e9);
    return text_of(graph);
  };
  EXPECT_THAT(attention("GreaterOrEqual", 2, 2), Not(HasSubstr("causal")));
  EXPECT_THAT(attention("GreaterOrEqual", 0, 0), Not(HasSubstr("causal")));
  EXPECT_THAT(attention("GreaterOrEqual", 2, 0), HasSubstr("causal: true"));  // a window of what came before
  EXPECT_THAT(attention("LessOrEqual", 0, 0), HasSubstr("causal: true"));
}

}  // namespace
}  // namespace tbdsim
