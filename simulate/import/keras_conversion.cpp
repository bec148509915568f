#include "simulate/import/keras_conversion.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>

#include "hwspecs/base/spec_writer.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000;
constexpr std::size_t kLongest = 1000;

bool has_channels_first(KerasFile& keras, const KerasModel& model) {
  return std::ranges::any_of(model.layers, [&](const KerasLayer& layer) {
    if (layer.inner) return has_channels_first(keras, *layer.inner);
    const JsonNode* format = keras.find(*layer.config, "data_format");
    return format != nullptr && format->is_text() && format->text(kLongest) == "channels_first";
  });
}

// "LeakyReLU" and "leaky_relu" are one function.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name.substr(name.rfind('>') + 1)) {
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

}  // namespace

KerasConversion::KerasConversion(KerasFile& keras, const std::string& file)
    : keras_(keras),
      builder_(file, keras.model().name.empty() ? "imported network" : keras.model().name),
      channels_first_(has_channels_first(keras, keras.model())) {}

std::vector<std::int64_t> keras_sides(const KerasConversion& net, std::vector<std::int64_t> sides) {
  if (!net.channels_first() && sides.size() > 2) std::rotate(sides.begin(), sides.end() - 1, sides.end());
  return sides;
}

void KerasConversion::fail(const KerasSite& site, const std::string& what) const {
  builder_.fail(in_quotes(site.name) + ": " + what);
}

std::int64_t KerasConversion::number(const KerasSite& site, std::string_view key, std::int64_t least) {
  return keras_.require(site.config, key).whole(least, kLargest);
}

std::int64_t KerasConversion::number_or(const KerasSite& site, std::string_view key, std::int64_t otherwise,
                                        std::int64_t least) {
  const JsonNode* value = keras_.find(site.config, key);
  return value == nullptr ? otherwise : value->whole(least, kLargest);
}

std::vector<std::int64_t> KerasConversion::numbers(const KerasSite& site, std::string_view key,
                                                   std::size_t count, std::int64_t otherwise) {
  const JsonNode* value = keras_.find(site.config, key);
  if (value == nullptr) return std::vector<std::int64_t>(count, otherwise);
  if (!value->is_list()) return std::vector<std::int64_t>(count, value->whole(1, kLargest));
  value->require_items(count, fmt::format("a whole number or a list of {}", count));
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back((*value)[i].whole(1, kLargest));
  return all;
}

bool KerasConversion::flag(const KerasSite& site, std::string_view key, bool otherwise) {
  const JsonNode* value = keras_.find(site.config, key);
  return value == nullptr ? otherwise : value->flag();
}

std::string KerasConversion::text(const KerasSite& site, std::string_view key, std::string_view otherwise) {
  const JsonNode* value = keras_.find(site.config, key);
  return value == nullptr ? std::string(otherwise) : value->text(kLongest);
}

NetworkTensor KerasConversion::in(const KerasSite& site, std::size_t number) {
  if (number >= site.from.size()) fail(site, "reads nothing; expected the layers it reads");
  const KerasTensor& tensor = site.from[number];
  if (tensor.pads == std::array<std::int64_t, 4>{}) return tensor.inside;
  const std::vector<std::int64_t>& image = tensor.inside.shape;
  const std::vector<std::int64_t> shape = {image[0], image[1] + tensor.pads[0] + tensor.pads[1],
                                           image[2] + tensor.pads[2] + tensor.pads[3]};
  builder_.fix_shapes();
  return builder_.add(
      "pad", site.name + "/pad", {tensor.inside}, shape,
      {{"dims", spec_list({spec_number(shape[0]), spec_number(shape[1]), spec_number(shape[2])})}});
}

NetworkTensor KerasConversion::add(const KerasSite& site, const std::string& type,
                                   const std::vector<NetworkTensor>& from, std::vector<std::int64_t> shape,
                                   LayerKeys keys) {
  return builder_.add(type, site.name, from, std::move(shape), std::move(keys));
}

NetworkTensor KerasConversion::cut(const KerasSite& site, const NetworkTensor& image,
                                   const std::vector<std::int64_t>& shape) {
  builder_.fix_shapes();
  std::vector<SpecTree> dims;
  for (const std::int64_t side : shape) dims.push_back(spec_number(side));
  return add(site, "slice", {image}, shape, {{"dims", spec_list(dims)}});
}

LayerKeys KerasConversion::of_weights(const KerasSite& site, LayerKeys keys) {
  const auto owner = owners_.find({&site.layer, site.part});
  if (owner != owners_.end()) keys.emplace_back("tied_to", spec_text(owner->second));
  if (!flag(site, "trainable", true)) keys.emplace_back("frozen", spec_scalar("true"));
  return keys;
}

NetworkTensor KerasConversion::set_owner(const KerasSite& site, const NetworkTensor& layer) {
  owners_.try_emplace({&site.layer, site.part}, layer.layer);
  return layer;
}

NetworkTensor KerasConversion::add_trained(const KerasSite& site, const std::string& type,
                                           const std::vector<NetworkTensor>& from,
                                           std::vector<std::int64_t> shape, LayerKeys keys) {
  return set_owner(site, add(site, type, from, std::move(shape), of_weights(site, std::move(keys))));
}

NetworkTensor KerasConversion::unsupported(const KerasSite& site, const std::string& why) {
  builder_.note_unsupported(site.type + (why.empty() ? "" : " " + why), site.name);
  return site.from.empty() ? NetworkTensor{} : in(site);
}

NetworkTensor KerasConversion::activate(const KerasSite& site, const NetworkTensor& from) {
  const JsonNode* value = keras_.find(site.config, "activation");
  if (value == nullptr) return from;
  if (value->is_text()) return function(site, value->text(kLongest), from);
  const KerasFile::Part part = keras_.part(*value);  // a function, or a layer that is one
  return function(site, part.config->is_text() ? part.config->text(kLongest) : part.type, from);
}

NetworkTensor KerasConversion::function(const KerasSite& site, const std::string& name,
                                        const NetworkTensor& from) {
  struct Function {
    std::string_view name, layer;
  };
  static constexpr Function kFunctions[] = {{"celu", "relu"},
                                            {"elu", "relu"},
                                            {"exponential", "pointwise"},
                                            {"gelu", "gelu"},
                                            {"hardsigmoid", "hardsigmoid"},
                                            {"hardsilu", "hardswish"},
                                            {"hardswish", "hardswish"},
                                            {"leakyrelu", "relu"},
                                            {"logsigmoid", "pointwise"},
                                            {"mish", "pointwise"},
                                            {"negative", "scale"},
                                            {"relu", "relu"},
                                            {"relu6", "relu6"},
                                            {"selu", "relu"},
                                            {"sigmoid", "sigmoid"},
                                            {"silu", "silu"},
                                            {"softplus", "pointwise"},
                                            {"softsign", "pointwise"},
                                            {"sqrt", "pointwise"},
                                            {"square", "pointwise"},
                                            {"swish", "silu"},
                                            {"tanh", "tanh"},
                                            {"thresholdedrelu", "relu"}};
  const std::string plain = plain_name(name);
  if (plain == "linear") return from;
  KerasSite own = site;
  own.name += "/" + plain;
  if (plain == "softmax" || plain == "logsoftmax") {
    const bool image = from.shape.size() == 3;
    const NetworkTensor rows = image ? by_pixels(own, from) : from;
    const NetworkTensor made = add(own, "softmax", {rows}, rows.shape);
    const NetworkTensor to = image ? as_image(own, made, from.shape) : made;
    softmax_[to.layer] = from;
    return to;
  }
  const auto* const found = std::ranges::find(kFunctions, std::string_view(plain), &Function::name);
  if (found == std::end(kFunctions)) {
    builder_.note_unsupported("activation " + name, site.name);
    return from;
  }
  return add(own, std::string(found->layer), {from}, from.shape);
}

NetworkTensor KerasConversion::by_pixels(const KerasSite& site, const NetworkTensor& image) {
  return builder_.add_reshape(site.name + "/pixels", image,
                              {product_of({image.shape[1], image.shape[2]}), image.shape[0]});
}

NetworkTensor KerasConversion::as_image(const KerasSite& site, const NetworkTensor& pixels,
                                        const std::vector<std::int64_t>& shape) {
  return builder_.add_reshape(site.name + "/image", pixels, shape);
}

NetworkTensor KerasConversion::before_softmax(const NetworkTensor& tensor) const {
  const auto found = softmax_.find(tensor.layer);
  return found == softmax_.end() ? tensor : found->second;
}

}  // namespace tbdsim
