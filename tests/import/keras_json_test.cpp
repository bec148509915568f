// Networks that Keras writes as JSON become models with the parameters that Keras counts as trained.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "simulate/import/keras_network.h"
#include "simulate/import/recognise.h"
#include "tests/hwspecs/message_of.h"
#include "tests/import/files.h"
#include "tests/import/network_counts.h"

namespace tbdsim {
namespace {

using test::Counts;
using test::counts_of;
using testing::HasSubstr;
using testing::Not;

Counts counts_of(const std::string& file) {
  return counts_of(keras_json_network(read_file(test::import_file(file), 1'000'000), file, {}));
}

std::string refusal(const std::string& text, const GivenValues& given = {}) {
  return test::message_of<SpecError>([&] { (void)keras_json_network(text, "k.json", given); });
}

// A layer of a chain.
std::string layer(const std::string& type, const std::string& keys) {
  return fmt::format(R"({{"class_name": "{}", "config": {{"name": "{}1"{}{}}}}})", type, type,
                     keys.empty() ? "" : ", ", keys);
}
std::string chain(const std::vector<std::string>& layers) {
  return fmt::format(R"({{"class_name": "Sequential", "config": {{"name": "s", "layers": [{}]}}}})",
                     fmt::join(layers, ", "));
}
std::string input(const std::string& shape) { return layer("InputLayer", "\"batch_shape\": " + shape); }

// 3 16 9 without biases; a model inside of 16 16 9 + 16 and a norm of 2 16; its input beside its output, 2 16
// channels of 32^2 pixels to 10 classes. The model inside is referred to by its second call, as its making
// is the first.
TEST(KerasJson, ReadsAModelInsideOfOneOfKeras2) {
  EXPECT_EQ(counts_of("keras2_nested.json"),
            (Counts{432 + 2320 + 32 + 327'690, 1024LL * (432 + 2304) + 327'680}));
}

// One product of 8 by 8 that is used twice in a model that is used twice, and one between.
TEST(KerasJson, CountsWeightsOfLayersAndModelsThatAreUsedAgainOnce) {
  EXPECT_EQ(counts_of("keras3_nested.json"), (Counts{2 * (64 + 8), 5 * 64}));
}

// 100 words of 32, a norm, four products of 32 by 32 with biases, two LSTMs of 8 units, 16 to 100 classes.
TEST(KerasJson, ReadsAttentionAndRecurrentLayers) {
  const std::int64_t lstm = 4 * (32 * 8 + 8 * 8 + 8);
  EXPECT_EQ(counts_of("keras3_sequence.json").parameters, 3200 + 64 + 4 * (32 * 32 + 32) + 2 * lstm + 1700);
  const std::string text = read_file(test::import_file("keras3_sequence.json"), 1'000'000);
  const std::string yaml = keras_json_network(text, "k.json", {}).text;
  EXPECT_THAT(yaml, HasSubstr("causal: true"));
  EXPECT_THAT(yaml, HasSubstr("reverse: true"));
  EXPECT_THAT(yaml, Not(HasSubstr("type: softmax\n")));  // the loss has it
}

// A stride of 2 with "same" makes 5 x 5 of 9 x 9 pixels, and a transposed convolution 10 x 10 of these.
TEST(KerasJson, PadsAsTensorFlowDoes) {
  const std::string text =
      chain({input("[null, 9, 9, 3]"),
             layer("Conv2D", R"("filters": 4, "kernel_size": [3, 3], "strides": [2, 2], "padding": "same")"),
             layer("Conv2DTranspose",
                   R"("filters": 2, "kernel_size": [3, 3], "strides": [2, 2], "padding": "same")"),
             layer("Flatten", ""), layer("Dense", R"("units": 5, "use_bias": false)")});
  const std::int64_t parameters = 3 * 4 * 9 + 4 + 4 * 2 * 9 + 2 + 200 * 5;
  EXPECT_EQ(counts_of(keras_json_network(text, "k.json", {})),
            (Counts{parameters, 25 * 108 + 25 * 72 + 1000}));
}

// Pads that no window can have are a layer: 4 rows before, none behind.
TEST(KerasJson, PadsThatNoWindowHasAreALayer) {
  const std::string text =
      chain({input("[null, 8, 8, 1]"), layer("ZeroPadding2D", R"("padding": [[4, 0], [0, 0]])"),
             layer("Conv2D", R"("filters": 1, "kernel_size": 3)"), layer("Flatten", "")});
  const std::string yaml = keras_json_network(text, "k.json", {}).text;
  EXPECT_THAT(yaml, HasSubstr("type: pad\n        from: \"InputLayer1\"\n        dims:\n          - 1\n"
                              "          - 12\n          - 8\n"));
}

TEST(KerasJson, FrozenLayersAreNotTrained) {
  const std::string text =
      chain({input("[null, 8]"), layer("BatchNormalization", R"("trainable": false, "axis": [1])"),
             layer("Dense", R"("units": 5, "trainable": false)"), layer("Dense", R"("units": 2)")});
  EXPECT_EQ(counts_of(keras_json_network(text, "k.json", {})).parameters, 5 * 2 + 2);
}

// Operators between layers of Keras 2, whose node is no list of inputs but one input.
TEST(KerasJson, ReadsOperatorsOfKeras2) {
  const std::string text = R"({"class_name": "Functional", "keras_version": "2.11.0", "config": {"layers": [
    {"class_name": "InputLayer", "name": "x", "config": {"batch_input_shape": [null, 4]}, "inbound_nodes": []},
    {"class_name": "Dense", "name": "d", "config": {"units": 4}, "inbound_nodes": [[["x", 0, 0, {}]]]},
    {"class_name": "TFOpLambda", "name": "add", "config": {"function": "__operators__.add"},
     "inbound_nodes": [["d", 0, 0, {"y": ["x", 0, 0], "name": null}]]},
    {"class_name": "TFOpLambda", "name": "half", "config": {"function": "math.multiply"},
     "inbound_nodes": [["add", 0, 0, {"y": 0.5, "name": null}]]}],
    "input_layers": [["x", 0, 0]], "output_layers": [["half", 0, 0]]}})";
  const std::string yaml = keras_json_network(text, "k.json", {}).text;
  EXPECT_THAT(yaml, HasSubstr("type: add\n        from:\n          - \"d\"\n          - \"x\"\n"));
  EXPECT_THAT(yaml, HasSubstr("type: scale\n        from: \"add\"\n"));
}

// Written by json.dump(model.to_json()), as a list of layers (Keras 2.1), by TensorFlow.js.
TEST(KerasJson, ReadsOtherWaysToWriteAModel) {
  const std::string layers = "[" + layer("Dense", R"("units": 3, "batch_input_shape": [null, 4])") + "]";
  const std::string list = R"({"class_name": "Sequential", "config": )" + layers + "}";
  const std::string topology =
      R"({"format": "layers-model", "modelTopology": {"keras_version": "2.4", "model_config": )" + list +
      "}}";
  for (const std::string& text : {list, nlohmann::json(list).dump(), topology}) {
    EXPECT_EQ(recognise_text(text), FileFormat::keras_json) << text;
    EXPECT_EQ(counts_of(keras_json_network(text, "k.json", {})), (Counts{15, 12})) << text;
  }
}

TEST(KerasJson, AsksForSidesThatAreOpen) {
  const std::string open = chain({input("[null, null, null, 3]"), layer("GlobalAveragePooling2D", "")});
  EXPECT_THAT(refusal(open), HasSubstr("side 1 of the input 'InputLayer1' is left open; expected --set "
                                       "input=224x224x3, say"));
  EXPECT_THAT(keras_json_network(open, "k.json", {{"input", "16x16x3"}}).text, HasSubstr("image_size: 16"));
  EXPECT_THAT(refusal(chain({layer("Dense", R"("units": 3)")})), HasSubstr("no shape of the input"));
  EXPECT_THAT(refusal(open, {{"input", "16 by 16"}}), HasSubstr("expected sides as 28x28x1"));
}

TEST(KerasJson, ListsLayersThatItHasNotWithTheirCounts) {
  const std::string text = chain({input("[null, 8, 8, 3]"), layer("Lambda", ""), layer("Lambda", ""),
                                  layer("Conv3D", R"("filters": 3)")});
  EXPECT_THAT(refusal(text), HasSubstr("k.json: operators without a layer of tbd-sim: Conv3D (1, at "
                                       "'Conv3D1'), Lambda (2, at 'Lambda1')"));
}

TEST(KerasJson, NamesThePlaceOfAnError) {
  EXPECT_THAT(
      refusal(chain({input("[null, 8]"), layer("Dense", R"("units": 0)")})),
      HasSubstr("k.json: config.layers[1].config.units: 0; expected a whole number, 1 to 1000000000"));
  EXPECT_THAT(refusal(chain({input("[null, 8]"), layer("Dense", "")})),
              HasSubstr("config.layers[1].config: a map; expected a map with the key 'units'"));
  EXPECT_THAT(refusal("{\"class_name\": \"Sequential\", \"config\": {\"layers\": [}"),
              HasSubstr("k.json:1:52: no JSON from here on; expected model.to_json() of Keras"));
  const auto graph = [](const std::string& from, const std::string& reads) {
    return R"({"class_name": "Model", "config": {"layers": [
      {"class_name": "InputLayer", "name": "x", "config": {"batch_shape": [null, 4]}, "inbound_nodes": []},
      {"class_name": "ReLU", "name": "first", "config": {}, "inbound_nodes": [[[")" +
           from + R"(", 0, 0, {}]]]},
      {"class_name": "ReLU", "name": "second", "config": {}, "inbound_nodes": [[[")" +
           reads +
           R"(", 0, 0, {}]]]}],
      "input_layers": [["x", 0, 0]], "output_layers": [["second", 0, 0]]}})";
  };
  EXPECT_THAT(refusal(graph("x", "fist")), HasSubstr("expected a layer of the model; did you mean 'first'?"));
  EXPECT_THAT(refusal(graph("second", "first")), HasSubstr("without a circle"));
}

// 20 models, each of which uses the one inside it twice: 2^20 calls.
TEST(KerasJson, RefusesModelsThatAreUsedWithoutEnd) {
  std::string inner = layer("ReLU", "");
  for (int depth = 0; depth < 20; ++depth) {
    inner = fmt::format(
        R"({{"class_name": "Model", "config": {{"layers": [
        {{"class_name": "InputLayer", "name": "x", "config": {{}}, "inbound_nodes": []}},
        {{"name": "n", "inbound_nodes": [[["x", 0, 0]], [["n", 0, 0]]], {}],
        "input_layers": [["x", 0, 0]], "output_layers": [["n", 1, 0]]}}}})",
        inner.substr(1));
  }
  EXPECT_THAT(refusal(inner, {{"input", "4"}}), HasSubstr("expected a smaller network"));
}

// The mean of all pixels is a vector: 2 * 4 numbers of its norm, 4 * 5 + 5 of a product.
TEST(KerasJson, MeansOfAllPixelsAreVectors) {
  const std::string text =
      chain({input("[null, 8, 8, 4]"), layer("GlobalAveragePooling2D", ""),
             layer("BatchNormalization", R"("axis": [1])"), layer("Dense", R"("units": 5)")});
  const ImportedFile file = keras_json_network(text, "k.json", {});
  EXPECT_EQ(counts_of(file), (Counts{8 + 25, 20}));
  EXPECT_THAT(file.text, HasSubstr("type: fully_connected"));
}

// 6 x 6 of 8 x 8 pixels, of which windows of 3 make 4 x 4, each of 3 * 9 * 2 multiply-adds.
TEST(KerasJson, CropsChangeTheSize) {
  const std::string text =
      chain({input("[null, 8, 8, 3]"), layer("CenterCrop", R"("height": 6, "width": 6)"),
             layer("Conv2D", R"("filters": 2, "kernel_size": 3)"), layer("Flatten", "")});
  EXPECT_EQ(counts_of(keras_json_network(text, "k.json", {})), (Counts{54 + 2, 16 * 54}));
}

TEST(KerasJson, RefusesSequencesWithChannelsFirst) {
  EXPECT_THAT(
      refusal(chain({input("[null, 3, 100]"),
                     layer("Conv1D", R"("filters": 8, "kernel_size": 3, "data_format": "channels_first")")})),
      HasSubstr("Conv1D with channels first"));
}

}  // namespace
}  // namespace tbdsim
