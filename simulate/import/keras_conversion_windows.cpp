// Layers of Keras over windows of an image, or of a sequence, which is an image of one row.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/keras_conversion.h"

namespace tbdsim {
namespace {

using Sides = std::vector<std::int64_t>;
using Window = std::pair<WindowSide, WindowSide>;

bool is_row(const KerasSite& site) { return site.type.ends_with("1D"); }

// Whether a layer reads as many sides as its type says.
bool reads_image(const KerasSite& site) {
  return site.from[0].inside.shape.size() == (is_row(site) ? 2U : 3U);
}

NetworkTensor without_pads(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor& inside = site.from[0].inside;
  if (!is_row(site)) return inside;
  return net.builder().add_reshape(site.name + "/row", inside, {inside.shape[1], 1, inside.shape[0]});
}

// The image as a sequence again where the layer reads one.
NetworkTensor seen(KerasConversion& net, const KerasSite& site, const NetworkTensor& image) {
  if (!is_row(site)) return image;
  return net.builder().add_reshape(site.name + "/sequence", image, {image.shape[2], image.shape[0]});
}

// Pads as TensorFlow has them: of an odd number one more behind; all before where a convolution is causal.
WindowSide padded(WindowSide side, const std::string& padding, std::int64_t inputs) {
  const std::int64_t span = (side.kernel - 1) * side.dilation + 1;
  if (padding == "causal") side.before += span - 1;
  if (padding != "same") return side;
  const std::int64_t outputs = (inputs + side.stride - 1) / side.stride;
  const std::int64_t needed = std::max<std::int64_t>(0, (outputs - 1) * side.stride + span - inputs);
  side.before += needed / 2;
  side.after += needed - needed / 2;
  return side;
}

Window window(KerasConversion& net, const KerasSite& site, const NetworkTensor& image,
              std::string_view kernel_key, bool dilates) {
  const std::size_t count = is_row(site) ? 1 : 2;
  Sides kernel = net.numbers(site, kernel_key, count, 2);
  Sides stride = net.numbers(site, "strides", count, 0), dilation(count, 1);
  if (dilates) dilation = net.numbers(site, "dilation_rate", count, 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (stride[i] == 0) stride[i] = dilates ? 1 : kernel[i];  // a pool's are its window
  }
  const std::string padding = net.text(site, "padding", "valid");
  if (padding != "valid" && padding != "same" && padding != "causal")
    net.keras().require(site.config, "padding").fail("valid, same or causal");
  const auto side = [&](std::size_t axis) {
    if (count == 1 && axis == 0) return WindowSide{};
    const std::size_t i = count == 1 ? 0 : axis;
    WindowSide one{.kernel = kernel[i], .stride = stride[i], .dilation = dilation[i]};
    const std::int64_t before = site.from[0].pads[2 * axis], after = site.from[0].pads[2 * axis + 1];
    one = padded(one, padding, image.shape[axis + 1] + before + after);
    one.before += before;
    one.after += after;
    return one;
  };
  return {side(0), side(1)};
}

// A window whose pads no layer has reads an image that was padded before.
NetworkTensor add_padded(KerasConversion& net, const KerasSite& site, const std::string& type,
                         const NetworkTensor& from, Window sides, std::int64_t channels, LayerKeys keys) {
  auto& [tall, wide] = sides;
  NetworkTensor image = from;
  if (!net.builder().has_pads(tall, wide, from.shape)) {
    net.builder().fix_shapes();
    const Sides shape = {from.shape[0], from.shape[1] + tall.before + tall.after,
                         from.shape[2] + wide.before + wide.after};
    image = net.builder().add(
        "pad", site.name + "/pad", {from}, shape,
        {{"dims", spec_list({spec_number(shape[0]), spec_number(shape[1]), spec_number(shape[2])})}});
    tall.before = tall.after = wide.before = wide.after = 0;
  }
  return net.builder().add_window(type, site.name, image, tall, wide, channels, std::move(keys));
}

LayerKeys filter_keys(std::int64_t filters, bool bias, std::int64_t groups) {
  LayerKeys keys = {{"filters", spec_number(filters)}, {"bias", spec_scalar(bias ? "true" : "false")}};
  if (groups != 1) keys.emplace_back("groups", spec_number(groups));
  return keys;
}

NetworkTensor convolution(KerasConversion& net, const KerasSite& site, const NetworkTensor& from,
                          const Window& sides, std::int64_t filters, bool bias, std::int64_t groups) {
  if (from.shape[0] % groups != 0)
    net.fail(site,
             fmt::format("{} channels in {} groups; expected a whole number in each", from.shape[0], groups));
  LayerKeys keys = net.of_weights(site, filter_keys(filters, bias, groups));
  return net.set_owner(site, add_padded(net, site, "conv2d", from, sides, filters, std::move(keys)));
}

NetworkTensor plain(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = without_pads(net, site);
  return convolution(net, site, from, window(net, site, from, "kernel_size", true),
                     net.number(site, "filters"), net.flag(site, "use_bias", true),
                     net.number_or(site, "groups", 1));
}

std::int64_t multiplied(KerasConversion& net, const KerasSite& site, std::int64_t channels) {
  return product_of({channels, net.number_or(site, "depth_multiplier", 1)});
}

NetworkTensor depthwise(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = without_pads(net, site);
  return convolution(net, site, from, window(net, site, from, "kernel_size", true),
                     multiplied(net, site, from.shape[0]), net.flag(site, "use_bias", true), from.shape[0]);
}

// A depthwise convolution and one of a pixel, whose bias is that of both.
NetworkTensor separable(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = without_pads(net, site);
  KerasSite each = site;
  each.name += "/depthwise";
  each.part = "depthwise";
  const NetworkTensor to = convolution(net, each, from, window(net, site, from, "kernel_size", true),
                                       multiplied(net, site, from.shape[0]), false, from.shape[0]);
  each.name = site.name;
  each.part = "pointwise";
  return convolution(net, each, to, {}, net.number(site, "filters"), net.flag(site, "use_bias", true), 1);
}

NetworkTensor pool(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = without_pads(net, site);
  const std::string type = site.type.starts_with("Max") ? "max_pool" : "avg_pool";
  return add_padded(net, site, type, from, window(net, site, from, "pool_size", false), from.shape[0], {});
}

// Keras makes (in - 1) * stride + kernel pixels and, of "same", leaves out what is more than in * stride.
NetworkTensor transposed(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const Sides kernel = net.numbers(site, "kernel_size", 2, 1), stride = net.numbers(site, "strides", 2, 1);
  const Sides dilation = net.numbers(site, "dilation_rate", 2, 1);
  const bool same = net.text(site, "padding", "valid") == "same";
  const bool square = kernel[0] == kernel[1] && stride[0] == stride[1] && stride[0] <= kernel[0] &&
                      dilation[0] == 1 && dilation[1] == 1 && net.number_or(site, "groups", 1) == 1;
  const std::int64_t filters = net.number(site, "filters");
  const std::int64_t more = std::max<std::int64_t>(0, kernel[0] - stride[0]);  // pixels beyond in * stride
  const std::int64_t pad = same ? (more + 1) / 2 : 0, extra = same ? 2 * pad - more : 0;
  const auto side = [&](std::int64_t in) { return product_of({in, stride[0]}) + (same ? 0 : more); };
  if (!square || net.keras().find(site.config, "output_padding") != nullptr || extra >= stride[0]) {
    (void)net.unsupported(site, "of other than squares without further pads");
    return {.layer = from.layer, .shape = {filters, side(from.shape[1]), side(from.shape[2])}};
  }
  return net.add_trained(site, "conv_transpose2d", {from},
                         {filters, side(from.shape[1]), side(from.shape[2])},
                         {{"filters", spec_number(filters)},
                          {"kernel", spec_number(kernel[0])},
                          {"stride", spec_number(stride[0])},
                          {"padding", spec_number(pad)},
                          {"output_padding", spec_number(extra)},
                          {"bias", spec_scalar(net.flag(site, "use_bias", true) ? "true" : "false")}});
}

NetworkTensor upsample(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const Sides size = net.numbers(site, "size", 2, 2);
  const std::string mode = net.text(site, "interpolation", "nearest");
  const Sides shape = {from.shape[0], product_of({from.shape[1], size[0]}),
                       product_of({from.shape[2], size[1]})};
  constexpr std::int64_t kMostFactor = 64;  // as the layer has it
  if (size[0] != size[1] || size[0] > kMostFactor) {
    (void)net.unsupported(site, "by two factors");
    return {.layer = from.layer, .shape = shape};
  }
  LayerKeys keys = {{"factor", spec_number(size[0])}};
  if (mode != "nearest") keys.emplace_back("mode", spec_scalar("bilinear"));
  return net.add(site, "upsample", {from}, shape, std::move(keys));
}

// Rows before and behind, columns before and behind: a number, one for each side, or for both ends.
std::array<std::int64_t, 4> ends(KerasConversion& net, const KerasSite& site, std::string_view key) {
  constexpr std::int64_t kMost = 1'000'000;
  const JsonNode& value = net.keras().require(site.config, key);
  if (value.is_whole()) {
    const std::int64_t all = value.whole(0, kMost);
    return {all, all, all, all};
  }
  value.require_items(2, "a number, or a list of two");
  std::array<std::int64_t, 4> made{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const JsonNode& side = net.keras().item(value, axis);
    if (!side.is_whole()) side.require_items(2, "a number, or a list of two");
    for (std::size_t end = 0; end < 2; ++end)
      made[2 * axis + end] = side.is_whole() ? side.whole(0, kMost) : side[end].whole(0, kMost);
  }
  return made;
}

NetworkTensor cropped(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const auto off = ends(net, site, "cropping");
  const Sides shape = {from.shape[0], from.shape[1] - off[0] - off[1], from.shape[2] - off[2] - off[3]};
  if (shape[1] < 1 || shape[2] < 1) net.fail(site, "leaves nothing of its image; expected less cropping");
  return net.cut(site, from, shape);
}

// The mean or maximum of all pixels, or of a sequence's positions: a number for each channel.
NetworkTensor whole(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const bool mean = site.type.find("Average") != std::string::npos;
  const bool keeps = net.flag(site, "keepdims", false);
  if (mean && !is_row(site)) {
    const NetworkTensor pixel = net.add(site, "global_avg_pool", {from}, {from.shape[0], 1, 1});
    return keeps ? pixel : net.builder().add_reshape(site.name + "/channels", pixel, {from.shape[0]});
  }
  const std::int64_t channels = is_row(site) ? from.shape[1] : from.shape[0];
  Sides shape = {channels};
  if (keeps) shape = is_row(site) ? Sides{1, channels} : Sides{channels, 1, 1};
  std::vector<SpecTree> dims;
  for (const std::int64_t side : shape) dims.push_back(spec_number(side));
  return net.add(site, "reduce", {from}, shape,
                 {{"dims", spec_list(dims)}, {"operation", spec_scalar(mean ? "mean" : "max")}});
}

struct Conversion {
  std::string_view type;
  NetworkTensor (*add)(KerasConversion& net, const KerasSite& site);
  bool activates = false;  // the layer has a function behind it
};
constexpr Conversion kConversions[] = {{"AveragePooling1D", pool},
                                       {"AveragePooling2D", pool},
                                       {"Conv1D", plain, true},
                                       {"Conv2D", plain, true},
                                       {"Conv2DTranspose", transposed, true},
                                       {"Convolution2D", plain, true},
                                       {"Cropping2D", cropped},
                                       {"DepthwiseConv1D", depthwise, true},
                                       {"DepthwiseConv2D", depthwise, true},
                                       {"GlobalAveragePooling1D", whole},
                                       {"GlobalAveragePooling2D", whole},
                                       {"GlobalMaxPooling1D", whole},
                                       {"GlobalMaxPooling2D", whole},
                                       {"MaxPooling1D", pool},
                                       {"MaxPooling2D", pool},
                                       {"SeparableConv1D", separable, true},
                                       {"SeparableConv2D", separable, true},
                                       {"UpSampling2D", upsample}};

}  // namespace

bool convert_keras_window(KerasConversion& net, const KerasSite& site, KerasOutputs& to) {
  const bool pads = site.type == "ZeroPadding2D";
  const auto* const found = std::ranges::find(kConversions, std::string_view(site.type), &Conversion::type);
  if (!pads && found == std::end(kConversions)) return false;
  const bool first = is_row(site) && net.text(site, "data_format", "") == "channels_first";
  if (first) {
    to = {{.inside = net.unsupported(site, "with channels first")}};
  } else if (!reads_image(site)) {
    to = {{.inside = net.unsupported(site, fmt::format("of {} sides", site.from[0].inside.shape.size()))}};
  } else if (pads) {
    to = {site.from[0]};
    const auto more = ends(net, site, "padding");
    for (std::size_t i = 0; i < more.size(); ++i) to[0].pads[i] += more[i];
  } else {
    const NetworkTensor made = found->add(net, site);
    const bool row = is_row(site) && made.shape.size() == 3;
    const NetworkTensor shown = row ? seen(net, site, made) : made;
    to = {{.inside = found->activates ? net.activate(site, shown) : shown}};
  }
  return true;
}

}  // namespace tbdsim
