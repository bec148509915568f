// Layers of Keras over sequences: tables of words, recurrent layers, attention.
#include <algorithm>
#include <iterator>

#include "hwspecs/base/spec_writer.h"
#include "simulate/import/keras_conversion.h"

namespace tbdsim {
namespace {

using Sides = std::vector<std::int64_t>;

SpecTree yes() { return spec_scalar("true"); }

KerasOutputs one(NetworkTensor tensor) { return {{.inside = std::move(tensor)}}; }

KerasOutputs embedding(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  if (from.shape.size() != 1) return one(net.unsupported(site, "of no sequence"));
  const std::int64_t outputs = net.number(site, "output_dim");
  return one(net.add_trained(
      site, "embedding", {from}, {from.shape[0], outputs},
      {{"words", spec_number(net.number(site, "input_dim"))}, {"outputs", spec_number(outputs)}}));
}

bool is_lstm(const KerasSite& site) { return site.type.ends_with("LSTM"); }

NetworkTensor last_step(KerasConversion& net, const KerasSite& site, const NetworkTensor& sequence) {
  return net.builder().add("sequence_last", site.name + "/last", {sequence}, {sequence.shape[1]});
}

// The outputs of all steps. cuDNN's own layers of Keras 2 have a bias for input and state each, and so has a
// GRU whose reset comes after its product.
NetworkTensor steps(KerasConversion& net, const KerasSite& site, bool reverse, bool alone) {
  std::vector<NetworkTensor> from = {net.in(site)};
  for (std::size_t i = 1; i < site.from.size(); ++i) from.push_back(net.in(site, i));  // states before
  const bool two = site.type.starts_with("CuDNN") || (!is_lstm(site) && net.flag(site, "reset_after", false));
  const std::int64_t units = net.number(site, "units");
  LayerKeys keys = {{"hidden", spec_number(units)}, {"biases", spec_number(two ? 2 : 1)}};
  if (reverse != net.flag(site, "go_backwards", false)) keys.emplace_back("reverse", yes());
  if (!alone) keys.emplace_back("alone", spec_scalar("false"));
  const std::int64_t length = from[0].shape[0];
  return net.add_trained(site, is_lstm(site) ? "lstm" : "gru", from, {length, units}, std::move(keys));
}

KerasOutputs recurrent(KerasConversion& net, const KerasSite& site) {
  if (site.from[0].inside.shape.size() != 2) return one(net.unsupported(site, "of no sequence"));
  const NetworkTensor all = steps(net, site, false, true);
  const bool sequences = net.flag(site, "return_sequences", false);
  const bool states = net.flag(site, "return_state", false);
  const NetworkTensor last = sequences && !states ? all : last_step(net, site, all);
  KerasOutputs to = one(sequences ? all : last);
  for (int state = 0; states && state < (is_lstm(site) ? 2 : 1); ++state) to.push_back({.inside = last});
  return to;
}

KerasOutputs both_ways(KerasConversion& net, const KerasSite& site) {
  const KerasFile::Part inner = net.keras().part(net.keras().require(site.config, "layer"));
  const bool known =
      inner.type == "LSTM" || inner.type == "GRU" || inner.type == "CuDNNLSTM" || inner.type == "CuDNNGRU";
  if (!known || site.from.size() != 1 || site.from[0].inside.shape.size() != 2)
    return one(net.unsupported(site, "of " + inner.type));
  std::vector<NetworkTensor> ways;
  bool sequences = false;
  for (const bool back : {false, true}) {
    KerasSite way{.layer = site.layer,
                  .type = inner.type,
                  .name = site.name + (back ? "/backward" : "/forward"),
                  .config = *inner.config,
                  .call = site.call,
                  .from = site.from,
                  .part = back ? "backward" : "forward"};
    const NetworkTensor all = steps(net, way, back, false);
    sequences = net.flag(way, "return_sequences", false);
    ways.push_back(sequences ? all : last_step(net, way, all));
    if (net.flag(way, "return_state", false)) return one(net.unsupported(site, "with states"));
  }
  const std::string merge = net.text(site, "merge_mode", "none");
  Sides shape = ways[0].shape;
  if (merge == "concat") {
    shape.back() *= 2;
    return one(net.add(site, "concat", ways, shape, {{"axis", spec_scalar("last")}}));
  }
  if (merge == "sum" || merge == "ave") return one(net.add(site, "add", ways, shape));
  if (merge == "mul") return one(net.add(site, "multiply", ways, shape));
  return {{.inside = ways[0]}, {.inside = ways[1]}};
}

// A layer for each position, of those that compute each position as it is.
KerasOutputs each_step(KerasConversion& net, const KerasSite& site) {
  constexpr std::string_view kEach[] = {"Activation", "BatchNormalization", "Dense", "Dropout",
                                        "LayerNormalization"};
  const KerasFile::Part inner = net.keras().part(net.keras().require(site.config, "layer"));
  const bool known = std::ranges::find(kEach, inner.type) != std::end(kEach);
  if (!known || site.from[0].inside.shape.size() != 2) return one(net.unsupported(site, "of " + inner.type));
  const KerasSite own{.layer = site.layer,
                      .type = inner.type,
                      .name = site.name,
                      .config = *inner.config,
                      .call = site.call,
                      .from = site.from,
                      .part = "each"};
  KerasOutputs to;
  (void)convert_keras_plain(net, own, to);
  return to;
}

KerasOutputs repeated(KerasConversion& net, const KerasSite& site) {
  const NetworkTensor from = net.in(site);
  if (from.shape.size() != 1) return one(net.unsupported(site, "of no vector"));
  const std::int64_t count = net.number(site, "n");
  const NetworkTensor row = net.builder().add_reshape(site.name + "/row", from, {1, from.shape[0]});
  return one(net.add(site, "expand", {row}, {count, from.shape[0]},
                     {{"dims", spec_list({spec_number(count), spec_number(from.shape[0])})}}));
}

// Query, value and, where it is another, key, each times a weight; attention; its product.
KerasOutputs attention(KerasConversion& net, const KerasSite& site) {
  std::vector<NetworkTensor> from;
  for (std::size_t i = 0; i < site.from.size(); ++i) from.push_back(net.in(site, i));
  const bool sequences = std::ranges::all_of(from, [](const auto& one) { return one.shape.size() == 2; });
  const JsonNode* axes = net.keras().find(site.config, "attention_axes");
  const bool positions = axes == nullptr || (axes->is_list() && axes->size() == 1);
  const bool known = sequences && positions && from.size() >= 2 && from.size() <= 3 &&
                     !net.flag(site, "use_gate", false) &&
                     net.keras().find(site.config, "sliding_window") == nullptr &&
                     net.keras().find(site.config, "output_shape") == nullptr;
  if (!known) return one(net.unsupported(site, "of other tensors than query, value and key"));
  const bool bias = net.flag(site, "use_bias", true);
  const std::int64_t heads = net.number(site, "num_heads"), keys = net.number(site, "key_dim");
  const std::int64_t values = net.number_or(site, "value_dim", keys);
  KerasSite own = site;
  const auto product = [&](const char* part, const NetworkTensor& of, std::int64_t outputs) {
    own.name = site.name + "/" + part;
    own.part = part;
    return net.add_trained(own, "fully_connected", {of}, {of.shape[0], outputs},
                           {{"outputs", spec_number(outputs)},
                            {"bias", spec_scalar(bias ? "true" : "false")},
                            {"per_position", yes()}});
  };
  const std::int64_t width = product_of({heads, values});
  const std::vector<NetworkTensor> all = {product("query", from[0], product_of({heads, keys})),
                                          product("key", from.back(), product_of({heads, keys})),
                                          product("value", from[1], width)};
  LayerKeys how = {{"heads", spec_number(heads)}};
  if (site.call.causal) how.emplace_back("causal", yes());
  own.name = site.name;
  const NetworkTensor seen = net.add(own, "attention", all, {from[0].shape[0], width}, std::move(how));
  return one(product("output", seen, from[0].shape[1]));
}

struct Conversion {
  std::string_view type;
  KerasOutputs (*add)(KerasConversion& net, const KerasSite& site);
};
constexpr Conversion kConversions[] = {
    {"Bidirectional", both_ways},      {"CuDNNGRU", recurrent},    {"CuDNNLSTM", recurrent},
    {"Embedding", embedding},          {"GRU", recurrent},         {"LSTM", recurrent},
    {"MultiHeadAttention", attention}, {"RepeatVector", repeated}, {"TimeDistributed", each_step}};

}  // namespace

bool convert_keras_sequence(KerasConversion& net, const KerasSite& site, KerasOutputs& to) {
  const auto* const found = std::ranges::find(kConversions, std::string_view(site.type), &Conversion::type);
  if (found == std::end(kConversions)) return false;
  to = found->add(net, site);
  return true;
}

}  // namespace tbdsim
