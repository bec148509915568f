// Layers of Keras that read one tensor and no window of it.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/keras_conversion.h"

namespace tbdsim {
namespace {

using Sides = std::vector<std::int64_t>;

bool is_image(const NetworkTensor& tensor) { return tensor.shape.size() == 3; }
SpecTree yes_or_no(bool value) { return spec_scalar(value ? "true" : "false"); }

// A product with the last side; of an image with its channels, as a convolution of one pixel has it.
NetworkTensor dense(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const std::int64_t units = net.number(site, "units");
  const bool bias = net.flag(site, "use_bias", true);
  if (is_image(from)) {
    const LayerKeys keys = net.of_weights(site, {{"filters", spec_number(units)}, {"bias", yes_or_no(bias)}});
    return net.set_owner(site, net.builder().add_window("conv2d", site.name, from, {}, {}, units, keys));
  }
  LayerKeys keys = {{"outputs", spec_number(units)}};
  if (!bias) keys.emplace_back("bias", yes_or_no(false));
  Sides shape = from.shape;
  shape.back() = units;
  if (shape.size() > 1) keys.emplace_back("per_position", yes_or_no(true));
  return net.add_trained(site, "fully_connected", {from}, shape, std::move(keys));
}

NetworkTensor activation(KerasConversion& net, const KerasSite& site) { return net.in(site); }
NetworkTensor function(KerasConversion& net, const KerasSite& site) {
  const bool six = site.type == "ReLU" && net.keras().find(site.config, "max_value") != nullptr;
  return net.function(site, six ? "relu6" : site.type, net.in(site));
}
NetworkTensor prelu(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  Sides shape = from.shape;  // axes that share a factor count from 1, channels last
  if (const JsonNode* axes = net.keras().find(site.config, "shared_axes")) {
    const bool moved = is_image(from) && !net.channels_first();
    for (std::size_t i = 0; axes->is_list() && i < axes->size(); ++i) {
      const std::int64_t rank = std::ssize(shape), axis = (*axes)[i].whole(1, rank);
      shape[static_cast<std::size_t>(moved ? axis % rank : axis - 1)] = 1;
    }
  }
  std::vector<SpecTree> dims;
  for (const std::int64_t side : shape) dims.push_back(spec_number(side));
  return net.add_trained(site, "pairwise", {from}, from.shape,
                         {{"operation", spec_scalar("function")}, {"trained", spec_list(dims)}});
}

// True for a norm over the channels; tbd-sim has none over another axis.
bool is_of_channels(KerasConversion& net, const KerasSite& site, const NetworkTensor& from) {
  const JsonNode* axis = net.keras().find(site.config, "axis");
  if (axis == nullptr) return true;
  if (axis->is_list() && axis->size() != 1) return false;
  const std::int64_t number =
      axis->is_list() ? net.keras().item(*axis, 0).whole(-100, 100) : axis->whole(-100, 100);
  const std::int64_t rank = std::ssize(from.shape) + 1;
  const std::int64_t channels = net.channels_first() && is_image(from) ? 1 : rank - 1;
  return (number < 0 ? number + rank : number) == channels;
}

NetworkTensor batch_norm(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  if (!is_of_channels(net, site, from)) return net.unsupported(site, "of another axis");
  LayerKeys keys;
  for (const auto& [own, theirs] : {std::pair("scale", "scale"), std::pair("shift", "center")}) {
    if (!net.flag(site, theirs, true)) keys.emplace_back(own, yes_or_no(false));
  }
  if (!net.flag(site, "trainable", true)) keys.emplace_back("statistics", spec_scalar("global"));
  return net.add_trained(site, "batch_norm", {from}, from.shape, std::move(keys));
}

NetworkTensor layer_norm(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  if (!is_of_channels(net, site, from)) return net.unsupported(site, "of another axis");
  const bool root = site.type == "RMSNormalization" || net.flag(site, "rms_scaling", false);
  const bool scale = net.flag(site, "scale", true), center = net.flag(site, "center", true);
  LayerKeys keys;
  if (!root && !scale && !center) keys.emplace_back("affine", yes_or_no(false));
  if (!root && scale && !center) keys.emplace_back("bias", yes_or_no(false));
  const NetworkTensor rows = is_image(from) ? net.by_pixels(site, from) : from;
  const NetworkTensor to =
      net.add_trained(site, root ? "rms_norm" : "layer_norm", {rows}, rows.shape, std::move(keys));
  return is_image(from) ? net.as_image(site, to, from.shape) : to;
}

NetworkTensor group_norm(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  if (!is_image(from) || !is_of_channels(net, site, from)) return net.unsupported(site, "of no image");
  const std::int64_t groups = net.number_or(site, "groups", 32, -1);
  LayerKeys keys = {{"groups", spec_number(groups < 1 ? from.shape[0] : groups)}};
  if (!net.flag(site, "scale", true) && !net.flag(site, "center", true))
    keys.emplace_back("affine", yes_or_no(false));
  return net.add_trained(site, "group_norm", {from}, from.shape, std::move(keys));
}

NetworkTensor dropout(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const std::string_view key = site.type == "StochasticDepth" ? "drop_path_rate" : "rate";
  const JsonNode* value = net.keras().find(site.config, key);
  const double rate = value == nullptr ? 0 : value->number();
  if (!(rate >= 0 && rate < 1)) value->fail("a number from 0 to 1");
  if (rate == 0) return from;
  // One number for a whole sample: [null, 1, 1, 1].
  const JsonNode* noise = net.keras().find(site.config, "noise_shape");
  bool whole = site.type == "StochasticDepth";
  if (noise != nullptr && noise->is_list() && noise->size() > 1) {
    whole = true;
    for (std::size_t i = 1; i < noise->size(); ++i) whole &= (*noise)[i].is_whole();
  }
  return net.add(site, whole ? "drop_path" : "dropout", {from}, from.shape,
                 {{"keep", spec_scalar(fmt::format("{:.6g}", 1 - rate))}});
}

NetworkTensor same(KerasConversion& net, const KerasSite& site) { return net.in(site); }

// Layers of the samples, which are made ready for the network on the CPU or beside it.
NetworkTensor made_ready(KerasConversion& net, const KerasSite& site) {
  net.builder().note(fmt::format("{} ({}) is left out: it makes samples ready", site.name, site.type));
  return net.in(site);
}
// A crop leaves an image of its height and width.
NetworkTensor crop(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  if (!is_image(from)) return net.unsupported(site, "of no image");
  const Sides shape = {from.shape[0], net.number(site, "height"), net.number(site, "width")};
  if (shape[1] > from.shape[1] || shape[2] > from.shape[2]) return net.unsupported(site, "to a larger image");
  if (shape == from.shape) return from;
  return net.cut(site, from, shape);
}

NetworkTensor each_element(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const bool two = site.type == "Normalization";
  return net.add(site, "pointwise", {from}, from.shape, {{"operations", spec_number(two ? 2 : 1)}});
}

NetworkTensor layer_scale(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  LayerKeys keys;
  if (is_image(from)) keys.emplace_back("axes", spec_scalar("image"));
  return net.add_trained(site, "layer_scale", {from}, from.shape, std::move(keys));
}

NetworkTensor flatten(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  if (from.shape.size() == 1) return from;
  return net.builder().add_reshape(site.name, from, {product_of(from.shape)});
}

NetworkTensor reshape(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const JsonNode& target = net.keras().require(site.config, "target_shape");
  constexpr std::size_t kMostSides = 7;
  target.require_list(kMostSides, "a list of sides");
  constexpr std::int64_t kMost = 1'000'000'000;
  Sides sides;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    sides.push_back(target[i].whole(-1, kMost));
    if (sides.back() > 0) known = product_of({known, sides.back()});
  }
  const std::int64_t all = product_of(from.shape);
  for (std::int64_t& side : sides) {
    if (side == -1 && known > 0) side = all / known;
  }
  if (sides.empty() || product_of(sides) != all || std::ranges::any_of(sides, [](auto s) { return s < 1; }))
    target.fail(fmt::format("sides of {} elements in all", all));
  const Sides shape = keras_sides(net, sides);
  return shape == from.shape ? from : net.builder().add_reshape(site.name, from, shape);
}

// Places of sides, with channels first, in the order that the file names them, the first side 1.
NetworkTensor permute(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  const JsonNode& dims = net.keras().require(site.config, "dims");
  const auto rank = std::ssize(from.shape);
  dims.require_items(from.shape.size(), fmt::format("a list of {} sides", rank));
  const bool moved = rank > 2 && !net.channels_first();
  Sides places, sizes;
  for (std::size_t i = 0; i < from.shape.size(); ++i) {
    const std::int64_t side = dims[i].whole(1, rank);
    places.push_back(moved ? side % rank : side - 1);  // of rows, columns, channels: 1, 2 and 0
  }
  places = keras_sides(net, places);
  Sides sorted = places;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) dims.fail("each side once");
  }
  std::vector<SpecTree> order;
  for (const std::int64_t place : places) {
    order.push_back(spec_number(place));
    sizes.push_back(from.shape[static_cast<std::size_t>(place)]);
  }
  return net.add(site, "transpose", {from}, sizes, {{"order", spec_list(order)}});
}

struct Conversion {
  std::string_view type;
  NetworkTensor (*add)(KerasConversion& net, const KerasSite& site);
  bool activates = false;  // the layer has a function behind it
};
constexpr Conversion kConversions[] = {{"Activation", activation, true},
                                       {"ActivityRegularization", same},
                                       {"AlphaDropout", dropout},
                                       {"BatchNormalization", batch_norm},
                                       {"CenterCrop", crop},
                                       {"Dense", dense, true},
                                       {"Dropout", dropout},
                                       {"ELU", function},
                                       {"Flatten", flatten},
                                       {"GaussianDropout", dropout},
                                       {"GaussianNoise", same},
                                       {"Gelu", function},
                                       {"GroupNormalization", group_norm},
                                       {"HardSigmoid", function},
                                       {"HardSilu", function},
                                       {"Identity", same},
                                       {"InputLayer", same},
                                       {"LayerNormalization", layer_norm},
                                       {"LayerScale", layer_scale},
                                       {"LeakyReLU", function},
                                       {"Masking", same},
                                       {"Normalization", each_element},
                                       {"PReLU", prelu},
                                       {"Permute", permute},
                                       {"RMSNormalization", layer_norm},
                                       {"RandomBrightness", made_ready},
                                       {"RandomContrast", made_ready},
                                       {"RandomCrop", crop},
                                       {"RandomFlip", made_ready},
                                       {"RandomRotation", made_ready},
                                       {"RandomTranslation", made_ready},
                                       {"RandomZoom", made_ready},
                                       {"ReLU", function},
                                       {"Relu", function},
                                       {"Relu6", function},
                                       {"Rescaling", each_element},
                                       {"Reshape", reshape},
                                       {"Sigmoid", function},
                                       {"Silu", function},
                                       {"Softmax", function},
                                       {"SpatialDropout1D", dropout},
                                       {"SpatialDropout2D", dropout},
                                       {"StochasticDepth", dropout},
                                       {"SyncBatchNormalization", batch_norm},
                                       {"Tanh", function},
                                       {"ThresholdedReLU", function}};

}  // namespace

bool convert_keras_plain(KerasConversion& net, const KerasSite& site, KerasOutputs& to) {
  const auto* const found = std::ranges::find(kConversions, std::string_view(site.type), &Conversion::type);
  if (found == std::end(kConversions)) return false;
  const NetworkTensor made = found->add(net, site);
  to = {{.inside = found->activates ? net.activate(site, made) : made}};
  return true;
}

}  // namespace tbdsim
