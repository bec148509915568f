// Networks of Caffe: layers beyond those of AlexNet.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "simulate/import/network_files.h"
#include "tests/hwspecs/message_of.h"
#include "tests/support/cli.h"
#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {

using testing::HasSubstr;

// Layers as `show` has them, by names, with the counts of the whole network.
struct Shown {
  std::map<std::string, std::pair<std::string, std::int64_t>> layers;  // sides of the output; parameters
  std::int64_t parameters = 0, forward_macs = 0;
};
Shown shown(const std::string& layers, const std::string& dims) {
  const test::TempDir dir;
  std::string text = "name: \"n\" input: \"data\" input_shape { dim: 1 " + dims + "}\n" + layers;
  const std::string yaml = prototxt_network(text, "n.prototxt").text;
  const std::string path = dir.write("model.yaml", yaml).string();
  const test::CliResult result = test::run({"show", path, "--format", "json"});
  EXPECT_EQ(result.exit_code, 0) << result.err << yaml;
  const auto json = nlohmann::json::parse(result.out);
  Shown all;
  for (const auto& layer : json.at("layers"))
    all.layers[layer.at("layer")] = {layer.at("output"), layer.at("parameters")};
  all.parameters = json.at("totals").at(0).at("parameters");
  all.forward_macs = json.at("totals").at(0).at("forward_macs");
  return all;
}
const std::string kImage = "dim: 6 dim: 9 dim: 9 ";

std::string layer(const std::string& type, const std::string& name, const std::string& from,
                  const std::string& keys = "") {
  return "layer { type: \"" + type + "\" name: \"" + name + "\" bottom: \"" + from + "\" top: \"" + name +
         "\" " + keys + "}\n";
}

// (9 - 1) 2 + 4 - 2 = 18 pixels; 6 8 16 weights and 8 biases, each of 81 pixels of the input.
TEST(Prototxt, DeconvolutionsOverlap) {
  const Shown net = shown(layer("Deconvolution", "up", "data",
                                "convolution_param { num_output: 8 kernel_size: 4 stride: 2 pad: 1 }"),
                          kImage);
  EXPECT_EQ(net.layers.at("up"), (std::pair<std::string, std::int64_t>("8x18x18", 776)));
  EXPECT_EQ(net.forward_macs, 81 * 768);
}

// With a group for each channel it enlarges an image, (9 - 1) 2 + 4 - 2, and a filler makes its numbers.
TEST(Prototxt, DeconvolutionsOfEachChannelEnlarge) {
  const Shown net =
      shown(layer("Deconvolution", "up", "data",
                  "convolution_param { num_output: 6 group: 6 kernel_size: 4 stride: 2 pad: 1 }"),
            kImage);
  EXPECT_EQ(net.layers.at("up"), (std::pair<std::string, std::int64_t>("6x18x18", 0)));
}

// A layer Scale behind a norm has its factors; without one there are none, and one alone is a layer.
TEST(Prototxt, ScalesBelongToTheNormsBeforeThem) {
  const std::string norm = "layer { type: \"BatchNorm\" name: \"bn\" bottom: \"data\" top: \"data\" }\n";
  const std::string scale =
      "layer { type: \"Scale\" name: \"scale\" bottom: \"data\" top: \"data\" scale_param { bias_term: true "
      "} "
      "}\n";
  const std::string relu = "layer { type: \"ReLU\" name: \"r\" bottom: \"data\" top: \"data\" }\n";
  EXPECT_EQ(shown(norm + scale, kImage).parameters, 12);
  EXPECT_EQ(shown(norm + relu, kImage).parameters, 0);
  EXPECT_EQ(shown(norm + relu + scale, kImage).parameters, 12);
  EXPECT_EQ(shown(norm + relu + scale, kImage).layers.at("bn").second, 0);
}

// Squeeze and excitation: a number of another branch for each channel.
TEST(Prototxt, ScalesMayBeComputed) {
  const std::string squeeze =
      layer("Pooling", "mean", "data", "pooling_param { pool: AVE global_pooling: true }") +
      layer("InnerProduct", "fc", "mean", "inner_product_param { num_output: 6 }") +
      "layer { type: \"Scale\" name: \"s\" bottom: \"data\" bottom: \"fc\" top: \"s\" scale_param { axis: 0 "
      "} "
      "}\n";
  const Shown net = shown(squeeze, kImage);
  EXPECT_EQ(net.layers.at("s").first, "6x9x9");
  EXPECT_EQ(net.parameters, 42);
}

// A kernel of 3 rows and 1 column with pads of its own; a slope of each channel; parts and other orders.
TEST(Prototxt, ReadsLayersOfDetectors) {
  const std::string net =
      layer("Convolution", "c", "data",
            "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 1 pad_h: 2 pad_w: 0 "
            "dilation: 2 bias_term: false }") +
      layer("PReLU", "p", "c") + layer("Normalize", "n", "p") +
      layer("Permute", "order", "n", "permute_param { order: 0 order: 2 order: 3 order: 1 }") +
      layer("Flatten", "flat", "order") +
      layer("Reshape", "rows", "flat", "reshape_param { shape { dim: 0 dim: -1 dim: 4 } }") +
      "layer { type: \"Slice\" name: \"parts\" bottom: \"rows\" top: \"a\" top: \"b\" "
      "slice_param { axis: 1 slice_point: 11 } }\n" +
      layer("Power", "half", "b", "power_param { scale: 0.5 }");
  const Shown all = shown(net, kImage);
  EXPECT_EQ(all.layers.at("c"), (std::pair<std::string, std::int64_t>("4x9x9", 72)));
  EXPECT_EQ(all.layers.at("p").second, 4);
  EXPECT_EQ(all.layers.at("n"), (std::pair<std::string, std::int64_t>("81x4", 4)));
  EXPECT_EQ(all.layers.at("order").first, "9x9x4");
  EXPECT_EQ(all.layers.at("rows").first, "81x4");
  EXPECT_EQ(all.layers.at("half").first, "70x4");
}

// Two branches with one name of their weights; a crop to the sides of another image; maxima.
TEST(Prototxt, SharesWeightsOfOneName) {
  const std::string net =
      layer("InnerProduct", "a", "data", "param { name: \"w\" } inner_product_param { num_output: 5 }") +
      layer("InnerProduct", "b", "data", "param { name: \"w\" } inner_product_param { num_output: 5 }") +
      "layer { type: \"Eltwise\" name: \"m\" bottom: \"a\" bottom: \"b\" top: \"m\" eltwise_param { "
      "operation: "
      "MAX } }\n";
  EXPECT_EQ(shown(net, "dim: 7 ").parameters, 40);
  const std::string crop =
      layer("Pooling", "half", "data", "pooling_param { kernel_size: 2 stride: 2 round_mode: FLOOR }") +
      "layer { type: \"Crop\" name: \"crop\" bottom: \"data\" bottom: \"half\" top: \"crop\" }\n";
  EXPECT_EQ(shown(crop, kImage).layers.at("crop").first, "6x4x4");
}

TEST(Prototxt, RefusesWhatNoLayerComputes) {
  const auto refusal = [](const std::string& layers) {
    return test::message_of<SpecError>([&] {
      (void)prototxt_network("input: \"data\" input_shape { dim: 1 dim: 6 dim: 9 dim: 9 }\n" + layers,
                             "n.prototxt");
    });
  };
  EXPECT_THAT(refusal(layer("Python", "proposal", "data") + layer("Python", "target", "data")),
              HasSubstr("n.prototxt: operators without a layer of tbd-sim: Python (2, at 'proposal')"));
  EXPECT_THAT(refusal(layer("Slice", "s", "data", "top: \"t\" slice_param { slice_point: 9 }")),
              HasSubstr("'s': slice_point: a part of 9 of 6"));
  EXPECT_THAT(
      refusal(layer("Slice", "s", "data", "top: \"t\" slice_param { slice_point: 2 slice_point: 4 }")),
      HasSubstr("'s': 2 slice_point of 2 tops; expected one fewer"));
  EXPECT_THAT(refusal(layer("Power", "p", "data", "power_param { scale: half }")),
              HasSubstr("'p': scale: 'half'; expected a number"));
  EXPECT_THAT(refusal(layer("Deconvolution", "d", "data",
                            "convolution_param { num_output: 6 kernel_size: 2 stride: 1 pad: 8 }")),
              HasSubstr("'d': its pads leave no image"));
}

}  // namespace
}  // namespace tbdsim
