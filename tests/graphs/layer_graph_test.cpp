// The graph: order, shapes, gradients, and the errors that name a layer and its line.
#include "graphs/layer_graph.h"

#include <gmock/gmock.h>

#include "tests/graphs/layer_fixture.h"

namespace tbdsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;
using testing::ThrowsMessage;

const auto kFile = std::make_shared<const std::string>("net.yaml");

LayerSpec spec(int line, std::string name, const std::string& yaml, std::vector<std::string> from) {
  LayerSpec layer;
  layer.name = std::move(name);
  layer.layer = test::make_layer(yaml);
  layer.from = std::move(from);
  layer.mark = {kFile, line, 5};
  return layer;
}

// Every layer may be an output of the graph.
LayerGraph build(std::vector<LayerSpec> layers,
                 std::vector<GraphInput> inputs = {{"data", test::image(3, 8, 8), {kFile, 1, 1}}}) {
  std::vector<std::string> outputs;
  for (const LayerSpec& layer : layers) outputs.push_back(layer.name);
  return build_layer_graph(std::move(inputs), std::move(layers), std::move(outputs));
}

std::vector<std::string> names(const LayerGraph& graph) {
  std::vector<std::string> all;
  for (const GraphLayer& layer : graph.layers) all.push_back(layer.spec.name);
  return all;
}

constexpr const char* kRelu = "{type: relu}";
constexpr const char* kConv = "{type: conv2d, filters: 4, kernel: 3, padding: 1}";

TEST(LayerGraph, KeepsTheOrderOfTheFile) {
  const LayerGraph graph = build({spec(1, "b", kRelu, {"data"}), spec(2, "a", kRelu, {"data"}),
                                  spec(3, "sum", "{type: add}", {"a", "b"}), spec(4, "c", kRelu, {"b"})});
  EXPECT_THAT(names(graph), ElementsAre("b", "a", "sum", "c"));
  EXPECT_THAT(graph.layers[0].inputs, ElementsAre(-1));  // graph input 0
  EXPECT_THAT(graph.layers[2].inputs, ElementsAre(1, 0));
  EXPECT_EQ(graph.layers[2].output, test::image(3, 8, 8));
}

// A layer may read one that stands behind it: that one, and what it reads, moves to the front.
TEST(LayerGraph, MovesForwardWhatIsReadEarlier) {
  const LayerGraph graph = build({spec(1, "sum", "{type: add}", {"x", "y"}), spec(2, "w", kRelu, {"data"}),
                                  spec(3, "y", kRelu, {"w"}), spec(4, "x", kRelu, {"data"})});
  EXPECT_THAT(names(graph), ElementsAre("x", "w", "y", "sum"));
}

TEST(LayerGraph, LongChainInReverseOrder) {
  constexpr int kLayers = 5000;
  std::vector<LayerSpec> layers;
  for (int i = kLayers; i > 0; --i) {
    layers.push_back(
        spec(i, "l" + std::to_string(i), kRelu, {i == 1 ? "data" : "l" + std::to_string(i - 1)}));
  }
  const LayerGraph graph = build(std::move(layers));
  ASSERT_EQ(graph.layers.size(), std::size_t{kLayers});
  for (std::size_t i = 0; i < graph.layers.size(); ++i)
    EXPECT_EQ(graph.layers[i].spec.name, "l" + std::to_string(i + 1));
}

TEST(LayerGraph, SeveralInputs) {
  const LayerGraph graph =
      build({spec(1, "a", "{type: fully_connected, outputs: 2}", {"text"}), spec(2, "b", kRelu, {"image"})},
            {{"image", test::image(3, 8, 8), {}}, {"text", test::vector(7), {}}});
  EXPECT_THAT(graph.layers[0].inputs, ElementsAre(-2));
  EXPECT_THAT(graph.layers[1].inputs, ElementsAre(-1));
  EXPECT_EQ(graph.layers[0].parameters[0].elements, 14);
  EXPECT_EQ(graph.layers[1].output, test::image(3, 8, 8));
}

// conv1 is trained and reads the data: no input gradient. Behind it everything needs one. relu has no
// weights.
TEST(LayerGraph, GradientsOfTrainedLayers) {
  const LayerGraph graph = build({spec(1, "conv1", kConv, {"data"}), spec(2, "relu1", kRelu, {"conv1"}),
                                  spec(3, "conv2", kConv, {"relu1"})});
  EXPECT_FALSE(graph.layers[0].input_gradient);
  EXPECT_TRUE(graph.layers[0].weight_gradient);
  EXPECT_TRUE(graph.layers[1].input_gradient);
  EXPECT_FALSE(graph.layers[1].weight_gradient);
  EXPECT_TRUE(graph.layers[2].input_gradient);
  EXPECT_TRUE(graph.layers[2].weight_gradient);
}

// conv1 and conv2 are frozen at the bottom: no gradient reaches them, conv3 has only weights' gradients, and
// the frozen conv4 above passes gradients through without any of its own.
TEST(LayerGraph, FrozenLayersStopAndPassGradients) {
  std::vector<LayerSpec> layers{spec(1, "conv1", kConv, {"data"}), spec(2, "conv2", kConv, {"conv1"}),
                                spec(3, "conv3", kConv, {"conv2"}), spec(4, "conv4", kConv, {"conv3"})};
  for (const std::size_t frozen : {0u, 1u, 3u}) layers[frozen].frozen = true;
  const LayerGraph graph = build(std::move(layers));
  for (const std::size_t bottom : {0u, 1u}) {
    EXPECT_FALSE(graph.layers[bottom].input_gradient || graph.layers[bottom].weight_gradient);
  }
  EXPECT_FALSE(graph.layers[2].input_gradient);
  EXPECT_TRUE(graph.layers[2].weight_gradient);
  EXPECT_TRUE(graph.layers[3].input_gradient);
  EXPECT_FALSE(graph.layers[3].weight_gradient);
}

// Moving statistics are no trained parameters: a norm without scale and shift has nothing to train.
TEST(LayerGraph, NormWithoutScaleAndShiftTrainsNothing) {
  const LayerGraph graph = build({spec(1, "bn", "{type: batch_norm, scale: false, shift: false}", {"data"}),
                                  spec(2, "conv", kConv, {"bn"})});
  EXPECT_FALSE(graph.layers[0].weight_gradient);
  EXPECT_FALSE(graph.layers[1].input_gradient);
}

TEST(LayerGraphErrors, CycleIsNamedInFull) {
  const auto cyclic = [] {
    (void)build({spec(1, "start", kRelu, {"data"}), spec(2, "a", "{type: add}", {"start", "c"}),
                 spec(3, "b", kRelu, {"a"}), spec(4, "c", kRelu, {"b"})});
  };
  EXPECT_THAT(cyclic, ThrowsMessage<ModelError>(
                          StrEq("net.yaml:2:5: layer 'a': is part of a cycle: a -> b -> c -> a; "
                                "expected a graph without")));
  EXPECT_THAT([] { (void)build({spec(1, "a", kRelu, {"a"})}); },
              ThrowsMessage<ModelError>(HasSubstr("layer 'a': is part of a cycle: a -> a;")));
}

// 12 layers in a circle: the first 9 names (the start and 8 more) and how many there are beside them.
TEST(LayerGraphErrors, LongCycleIsCutShort) {
  std::vector<LayerSpec> layers;
  for (int i = 0; i < 12; ++i) {
    layers.push_back(spec(i + 1, "l" + std::to_string(i), kRelu, {"l" + std::to_string((i + 11) % 12)}));
  }
  EXPECT_THAT([&] { (void)build(layers); }, ThrowsMessage<ModelError>(HasSubstr("... (3 more)")));
}

TEST(LayerGraphErrors, Names) {
  EXPECT_THAT(
      [] {
        (void)build({spec(1, "conv", kConv, {"data"}), spec(2, "relu", kRelu, {"cnov"})});
      },
      ThrowsMessage<ModelError>(StrEq("net.yaml:2:5: layer 'relu': reads 'cnov', which is no layer or input; "
                                      "did you mean 'conv'?")));
  EXPECT_THAT(
      [] {
        (void)build({spec(1, "a", kRelu, {"data"}), spec(2, "a", kRelu, {"a"})});
      },
      ThrowsMessage<ModelError>(HasSubstr("net.yaml:2:5: layer 'a': the name appears twice")));
}

TEST(LayerGraphErrors, ShapesThatDoNotMatch) {
  EXPECT_THAT(
      [] {
        (void)build({spec(1, "conv", kConv, {"data"}), spec(2, "sum", "{type: add}", {"conv", "data"})});
      },
      ThrowsMessage<ModelError>(
          StrEq("net.yaml:2:5: layer 'sum': inputs have shapes 4x8x8 and 3x8x8; expected "
                "one shape")));
  EXPECT_THAT(
      [] { (void)build({spec(1, "pool", "{type: max_pool, kernel: 9, padding: 0}", {"data"})}); },
      ThrowsMessage<ModelError>(HasSubstr("layer 'pool': a window of 9 does not fit an input height of 8")));
}

// A number for the whole batch (fixed rows) does not match one for each sample, for any dimensions.
TEST(LayerGraphErrors, RowsThatDoNotMatch) {
  struct Pair {
    const char* layer;
    std::vector<std::int64_t> a, b;
  };
  const Pair pairs[] = {{"{type: add}", {4}, {4}},
                        {"{type: concat}", {4}, {4}},
                        {"{type: concat, axis: last}", {4}, {4}},
                        {"{type: interpolate}", {4}, {4}},
                        {"{type: weighted_sum}", {3}, {3, 4}},
                        {"{type: additive_score}", {4}, {3, 4}},
                        {"{type: attention_scores}", {2, 3, 4}, {2, 3, 4}},
                        {"{type: attention_context}", {2, 3, 3}, {2, 3, 4}},
                        {"{type: actor_critic_loss}", {4}, {1}},
                        {"{type: smooth_l1_loss}", {4}, {4}},
                        {"{type: lstm, hidden: 4}", {3, 5}, {4}},
                        {"{type: gru, hidden: 4, gates: given}", {3, 5}, {3, 8}},
                        {"{type: proposal, after: 5, suppression: host}", {2}, {4}}};
  for (const Pair& pair : pairs) {
    const auto join = [&](Size rows) {
      (void)build({spec(2, "join", pair.layer, {"a", "b"})},
                  {{"a", {test::per_sample(7), pair.a}, {}}, {"b", {rows, pair.b}, {}}});
    };
    EXPECT_NO_THROW(join(test::per_sample(7))) << pair.layer;
    EXPECT_THAT([&] { join(fixed_size(1)); },
                ThrowsMessage<ModelError>(StrEq("net.yaml:2:5: layer 'join': inputs have 0 + 7 x batch and 1 "
                                                "+ 0 x batch rows; expected as many of all")))
        << pair.layer;
  }
}

// 1e9 x 1e9 pixels of 10 filters are 1e19 elements, more than 2^63 = 9.2e18.
TEST(LayerGraphErrors, SizesBeyond64Bits) {
  const auto huge = [](const std::string& layer) {
    return [layer] {
      (void)build_layer_graph({{"data", test::image(1, 1'000'000'000, 1'000'000'000), {}}},
                              {spec(3, "big", layer, {"data"})});
    };
  };
  EXPECT_THAT(huge("{type: conv2d, filters: 10, kernel: 1, padding: 0}"),
              ThrowsMessage<ModelError>(
                  StrEq("net.yaml:3:5: layer 'big': a size beyond 64 bits; expected a smaller layer")));
  // 1e18 inputs times 1e9 outputs
  EXPECT_THAT(huge("{type: fully_connected, outputs: 1000000000}"),
              ThrowsMessage<ModelError>(HasSubstr("layer 'big'")));
}

// Sizes that a layer computes stay as small as those a file may give: 6e8 + 6e8 features are too many.
TEST(LayerGraphErrors, DimensionsAreLimited) {
  const GraphInput wide{"data", test::vector(600'000'000), {}};
  EXPECT_THAT(
      [&] {
        (void)build({spec(4, "both", "{type: concat, axis: last}", {"data", "data"})}, {wide});
      },
      ThrowsMessage<ModelError>(StrEq("net.yaml:4:5: layer 'both': output has shape 1200000000; expected "
                                      "dimensions from 1 to 1000000000")));
  const GraphInput half{"data", test::vector(500'000'000), {}};
  EXPECT_EQ(build({spec(4, "both", "{type: concat, axis: last}", {"data", "data"})}, {half}).layers[0].output,
            test::vector(1'000'000'000));
}

// Step by step over 5 steps of 4 numbers: 4 -> 3 at every step, 5 x 3 in all.
TEST(LayerGraph, StepsAreTakenOffAndPutBack) {
  LayerSpec fc = spec(1, "fc", "{type: fully_connected, outputs: 3}", {"data"});
  fc.per_step = true;
  const LayerGraph graph = build({fc}, {{"data", {{0, 1}, {5, 4}}, {}}});
  EXPECT_EQ(graph.layers[0].steps, 5);
  EXPECT_EQ(graph.layers[0].input_shapes[0], test::vector(4));
  EXPECT_EQ(graph.layers[0].step_output, test::vector(3));
  EXPECT_EQ(graph.layers[0].output, (Shape{{0, 1}, {5, 3}}));
  EXPECT_EQ(graph.layers[0].parameters[0].elements, 12);  // shared by all steps
}

TEST(LayerGraphErrors, StepsMustAgree) {
  LayerSpec sum = spec(1, "sum", "{type: add}", {"a", "b"});
  sum.per_step = true;
  EXPECT_THAT(
      [&] {
        (void)build({sum}, {{"a", {{0, 1}, {5, 4}}, {}}, {"b", {{0, 1}, {6, 4}}, {}}});
      },
      ThrowsMessage<ModelError>(HasSubstr("layer 'sum': input 'b' has shape 6x4; expected steps x ..., "
                                          "the same for all inputs")));
  sum.whole = {"a", "b"};
  EXPECT_THAT(
      [&] {
        (void)build({sum}, {{"a", {{0, 1}, {5, 4}}, {}}, {"b", {{0, 1}, {5, 4}}, {}}});
      },
      ThrowsMessage<ModelError>(HasSubstr("reads every input whole; expected one to go through")));
}

// The second layer has the first one's weight: no parameters, but gradients for it.
TEST(LayerGraph, TiedLayersShareAWeight) {
  LayerSpec second = spec(2, "b", "{type: fully_connected, outputs: 4, bias: false}", {"a"});
  second.tied_to = "a";
  const LayerGraph graph = build({spec(1, "a", "{type: fully_connected, outputs: 4}", {"data"}), second},
                                 {{"data", test::vector(4), {}}});
  EXPECT_TRUE(graph.layers[1].parameters.empty());
  EXPECT_TRUE(graph.layers[1].weight_gradient);
  EXPECT_EQ(graph.layers[1].tied_to, 0);
}

// A table of 9 rows of 4, looked up at 5 positions and at 2: rows of gradients of both. A product with the
// table has a gradient of every element; a frozen one has none.
TEST(LayerGraph, TiedTablesAddTheirRows) {
  constexpr const char* kTable = "{type: embedding, words: 9, outputs: 4}";
  const auto rows = [&](const char* yaml, const std::string& from, bool frozen) {
    LayerSpec second = spec(2, "b", yaml, {from});
    second.tied_to = "a";
    second.frozen = frozen;
    const LayerGraph graph = build({spec(1, "a", kTable, {"source"}), second},
                                   {{"source", test::vector(5), {}}, {"target", test::vector(2), {}}});
    return graph.layers[0].parameters[0].gradient_rows;
  };
  constexpr const char* kProduct = "{type: fully_connected, outputs: 9, bias: false, per_position: true}";
  EXPECT_EQ(rows(kTable, "target", false), (Size{0, 7 * 4}));
  EXPECT_EQ(rows(kProduct, "a", false), Size{});
  EXPECT_EQ(rows(kProduct, "a", true), (Size{0, 5 * 4}));
}

// With its bias, which both may have.
TEST(LayerGraph, TiedLayersShareABias) {
  LayerSpec second = spec(2, "b", "{type: fully_connected, outputs: 4}", {"a"});
  second.tied_to = "a";
  const LayerGraph graph = build({spec(1, "a", "{type: fully_connected, outputs: 4}", {"data"}), second},
                                 {{"data", test::vector(4), {}}});
  EXPECT_TRUE(graph.layers[1].parameters.empty());
  EXPECT_TRUE(graph.layers[1].weight_gradient);
}

TEST(LayerGraphErrors, TiedWeightsHaveOneSize) {
  LayerSpec second = spec(2, "b", "{type: fully_connected, outputs: 3, bias: false}", {"a"});
  second.tied_to = "a";
  const auto tied = [&] {
    (void)build({spec(1, "a", "{type: fully_connected, outputs: 4}", {"data"}), second},
                {{"data", test::vector(4), {}}});
  };
  EXPECT_THAT(tied, ThrowsMessage<ModelError>(
                        HasSubstr("has parameters of 12 elements and is tied to such of 16, 4")));
  second.tied_to = "c";
  EXPECT_THAT(tied,
              ThrowsMessage<ModelError>(HasSubstr("is tied to 'c'; expected a layer that runs before it")));
}

TEST(LayerGraphErrors, OutputsThatNobodyReads) {
  EXPECT_THAT(
      [] {
        (void)build_layer_graph({{"data", test::image(3, 8, 8), {kFile, 1, 1}}},
                                {spec(7, "a", kRelu, {"data"})});
      },
      ThrowsMessage<ModelError>(HasSubstr("net.yaml:7:5: layer 'a': nobody reads its output; expected")));
  const LayerGraph loss = build_layer_graph({{"data", test::vector(4), {kFile, 1, 1}}},
                                            {spec(7, "a", "{type: softmax_loss}", {"data"})});
  EXPECT_EQ(loss.layers.size(), 1u);  // a loss is the end
}

}  // namespace
}  // namespace tbdsim
