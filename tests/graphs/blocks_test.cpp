// Parameters, blocks and repeats: what a model file's layers expand to.
#include "graphs/blocks.h"

#include <gmock/gmock.h>

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Expands a text with the keys parameters, blocks (both may be missing) and layers; the first layer reads
// `data`.
std::vector<LayerSpec> expand(const std::string& yaml) {
  const SpecTree tree = parse_spec(yaml, "model.yaml");
  std::vector<LayerSpec> layers;
  SpecNode(tree).map([&](SpecMap& m) {
    Parameters parameters;
    if (const auto node = m.find("parameters")) {
      node->map([&](SpecMap& p) {
        for (const auto& [name, mark, value] : p.all()) parameters[name] = value.tree();
      });
    }
    const auto blocks = m.find("blocks");
    layers = expand_layers(m.at("layers"), blocks ? blocks->tree() : SpecTree{}, parameters, "data").layers;
  });
  return layers;
}

// "name <- source source" for each layer.
std::vector<std::string> wiring(const std::vector<LayerSpec>& layers) {
  std::vector<std::string> lines;
  for (const LayerSpec& layer : layers) {
    std::string line = layer.name + " <-";
    for (const std::string& source : layer.from) line += " " + source;
    lines.push_back(line);
  }
  return lines;
}

void expect_error(const std::string& yaml, const std::string& part) {
  EXPECT_THAT([&] { (void)expand(yaml); }, ThrowsMessage<SpecError>(HasSubstr(part))) << yaml;
}

TEST(Blocks, LayersReadTheOneBeforeThem) {
  EXPECT_THAT(wiring(expand("layers:\n"
                            "  - {name: a, type: relu}\n"
                            "  - {name: b, type: relu}\n"
                            "  - {name: c, type: relu, from: a}\n"
                            "  - {name: d, type: add, from: [b, c]}\n"
                            "  - {name: e, type: relu}\n")),
              ElementsAre("a <- data", "b <- a", "c <- a", "d <- b c", "e <- d"));
}

// $width, ${width} and a parameter that is a whole list; 4 filters of 1x7 over 3 channels have 84 weights.
TEST(Blocks, ParametersOfTheModel) {
  const auto layers = expand(
      "parameters: {width: 4, window: [1, 7], word: conv}\n"
      "layers:\n"
      "  - {name: '${word}1_$width', type: conv2d, filters: $width, kernel: $window, padding: 0}\n");
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].name, "conv1_4");
  const std::vector<Shape> inputs{{{0, 1}, {3, 10, 10}}};
  EXPECT_EQ(layers[0].layer->parameters(inputs)[0].elements, 84);
}

constexpr const char* kUnit =
    "blocks:\n"
    "  unit:\n"
    "    parameters: [kernel]\n"
    "    layers:\n"
    "      - {name: \"${name}_pool\", type: max_pool, kernel: $kernel, padding: same}\n"
    "      - {name: \"${name}_sum\", type: add, from: [\"${name}_pool\", $in]}\n";

TEST(Blocks, InIsWhatTheBlockReads) {
  EXPECT_THAT(
      wiring(expand(std::string(kUnit) + "layers:\n"
                                         "  - {name: stem, type: relu}\n"
                                         "  - {block: unit, name: u1, with: {kernel: 2}}\n"
                                         "  - {block: unit, name: u2, from: stem, with: {kernel: 3}}\n"
                                         "  - {name: end, type: relu}\n")),
      ElementsAre("stem <- data", "u1_pool <- stem", "u1_sum <- u1_pool stem", "u2_pool <- stem",
                  "u2_sum <- u2_pool stem", "end <- u2_sum"));
}

TEST(Blocks, FirstBlockReadsTheGraphInput) {
  EXPECT_THAT(wiring(expand(std::string(kUnit) + "layers:\n  - {block: unit, name: u, with: {kernel: 2}}\n")),
              ElementsAre("u_pool <- data", "u_sum <- u_pool data"));
}

TEST(Blocks, RepeatCountsFromAndToInclusive) {
  EXPECT_THAT(
      wiring(expand(
          std::string(kUnit) +
          "layers:\n"
          "  - {block: unit, name: \"u$i\", with: {kernel: $i}, repeat: {index: i, from: 2, to: 4}}\n")),
      ElementsAre("u2_pool <- data", "u2_sum <- u2_pool data", "u3_pool <- u2_sum",
                  "u3_sum <- u3_pool u2_sum", "u4_pool <- u3_sum", "u4_sum <- u4_pool u3_sum"));
}

// `from` behind `to` is an empty range: a stage of one unit has no further ones.
TEST(Blocks, RepeatMayBeEmpty) {
  EXPECT_THAT(
      wiring(expand(
          "parameters: {units: 1}\n" + std::string(kUnit) +
          "layers:\n"
          "  - {name: a, type: relu}\n"
          "  - {block: unit, name: \"u$i\", with: {kernel: 2}, repeat: {index: i, from: 2, to: $units}}\n"
          "  - {name: b, type: relu}\n")),
      ElementsAre("a <- data", "b <- a"));
}

TEST(Blocks, NestedBlocksPassParametersOn) {
  EXPECT_THAT(wiring(expand(std::string(kUnit) +
                            "  stage:\n"
                            "    parameters: [window, last]\n"
                            "    layers:\n"
                            "      - {block: unit, name: \"${name}_$i\", with: {kernel: $window},\n"
                            "         repeat: {index: i, from: 1, to: $last}}\n"
                            "      - {name: \"${name}_end\", type: relu}\n"
                            "layers:\n"
                            "  - {block: stage, name: s, with: {window: 3, last: 2}}\n")),
              ElementsAre("s_1_pool <- data", "s_1_sum <- s_1_pool data", "s_2_pool <- s_1_sum",
                          "s_2_sum <- s_2_pool s_1_sum", "s_end <- s_2_sum"));
}

TEST(Blocks, FrozenLayersSaySo) {
  const auto layers = expand(
      "layers:\n"
      "  - {name: a, type: batch_norm, frozen: true}\n"
      "  - {name: b, type: batch_norm}\n");
  EXPECT_TRUE(layers[0].frozen);
  EXPECT_FALSE(layers[1].frozen);
}

TEST(Blocks, MarksPointIntoTheFile) {
  const auto layers = expand("layers:\n  - {name: a, type: relu}\n  - {name: b, type: relu}\n");
  EXPECT_EQ(to_text(layers[1].mark), "model.yaml:3:5");
}

TEST(BlockErrors, Parameters) {
  expect_error("parameters: {width: 4}\nlayers:\n  - {name: $widht, type: relu}\n",
               "model.yaml:3:12: unknown parameter '$widht'; did you mean '$width'?");
  expect_error("layers:\n  - {name: 'a$', type: relu}\n", "'a$' has a '$' without a parameter");
  expect_error("layers:\n  - {name: 'a${b', type: relu}\n", "expected $name or ${name}");
  expect_error("parameters: {p: [1, 2]}\nlayers:\n  - {name: 'a$p', type: relu}\n",
               "puts a list or map into text");
}

TEST(BlockErrors, Uses) {
  const std::string unit = kUnit;
  expect_error(unit + "layers:\n  - {block: unti, name: u, with: {kernel: 2}}\n",
               "unknown block 'unti'; did you mean 'unit'?");
  expect_error(unit + "layers:\n  - {block: unit, name: u}\n", "key 'with' is missing; expected kernel");
  expect_error(unit + "layers:\n  - {block: unit, name: u, with: {kernle: 2}}\n", "kernel");
  expect_error(unit + "layers:\n  - {block: unit, name: u, with: {kernel: 2, stride: 1}}\n", "stride");
  expect_error(unit + "layers:\n  - {block: unit, with: {kernel: 2}}\n", "name");
  expect_error("layers:\n  - {block: unit, name: u}\n", "unknown block 'unit'");
  expect_error("layers: []\n", "has no layers; expected at least one");
}

TEST(BlockErrors, ParameterMayNotHideAnother) {
  for (const char* name : {"width", "in", "name"}) {
    expect_error("parameters: {width: 4}\nblocks:\n  unit: {parameters: [" + std::string(name) +
                     "], layers: [{name: a, type: relu}]}\nlayers:\n  - {name: a, type: relu}\n",
                 "hides the model's parameter of that name");
  }
}

TEST(BlockErrors, BlockInsideItself) {
  expect_error(
      "blocks:\n  loop:\n    layers:\n      - {block: loop, name: $name}\nlayers:\n  - {block: loop, name: "
      "l}\n",
      "blocks nested more than 16 deep; does a block contain itself?");
}

// 1000 x 1000 uses of two layers each would be two million layers: stopped at 100,000, as are uses of blocks.
TEST(BlockErrors, TooManyLayers) {
  const auto million = [](const std::string& layers) {
    return "blocks:\n"
           "  pair: {layers: [" +
           layers +
           "]}\n"
           "  many: {layers: [{block: pair, name: \"${name}_$i\", repeat: {index: i, from: 1, to: 1000}}]}\n"
           "layers:\n  - {block: many, name: \"m$i\", repeat: {index: i, from: 1, to: 1000}}\n";
  };
  expect_error(million("{name: \"${name}a\", type: relu}, {name: \"${name}b\", type: relu}"),
               "more than 20000 layers");
  expect_error(million("{name: $name, type: relu}"), "more than 20000 uses of blocks");
}

TEST(BlockErrors, Layers) {
  expect_error("layers:\n  - {name: a, type: reul}\n", "did you mean 'relu'?");
  expect_error("layers:\n  - {name: a, type: relu, kernel: 3}\n", "kernel");
  expect_error("layers:\n  - {type: relu}\n", "name");
  expect_error("layers:\n  - {name: a}\n", "type");
}

}  // namespace
}  // namespace tbdsim
