#include "graphs/layers/attention_shape.h"

#include <algorithm>
#include <array>

namespace tbdsim {
namespace {

constexpr std::int64_t kMostHeads = 1'000'000;
constexpr std::array<std::string_view, 3> kBiasNames = {"none", "alibi", "relative"};

std::int64_t features_of(const Shape& shape, const char* what) {
  if (shape.dims.size() != 2)
    throw ShapeMismatch(std::string(what) + " have shape " + to_text(shape) +
                        "; expected positions x features");
  return shape.dims[1];
}

std::int64_t part_of(const Shape& shape, const char* what, std::int64_t heads) {
  const std::int64_t features = features_of(shape, what);
  if (features % heads != 0)
    throw ShapeMismatch(std::string(what) + " have " + std::to_string(features) +
                        " features; expected a multiple of " + std::to_string(heads) + " heads");
  return features / heads;
}

}  // namespace

AttentionKeys read_attention_keys(SpecMap& m) {
  AttentionKeys keys;
  keys.heads = m.at("heads").count(1, kMostHeads);
  keys.kv_heads = keys.heads;
  if (const auto node = m.find("kv_heads")) {
    keys.kv_heads = node->count(1, kMostHeads);
    if (keys.heads % keys.kv_heads != 0)
      node->fail("does not divide the " + std::to_string(keys.heads) +
                 " heads of queries; expected one that does");
  }
  if (const auto node = m.find("shared")) keys.shared = node->count(1, kLargestDimension);
  if (const auto node = m.find("window")) keys.window = node->count(0, kLargestDimension);
  if (const auto node = m.find("causal")) keys.causal = node->flag();
  if (const auto node = m.find("keep")) keys.drops = node->number(0.0, 1.0) < 1;
  if (const auto node = m.find("strided")) keys.strided = node->flag();
  if (const auto node = m.find("sinks")) keys.sinks = node->flag();
  if (const auto node = m.find("score_bias")) keys.bias = static_cast<ScoreBias>(node->one_of(kBiasNames));
  if (const auto node = m.find("buckets")) keys.buckets = node->count(0, kLargestDimension);
  return keys;
}

AttentionSizes attention_sizes(const AttentionKeys& keys, std::span<const Shape> inputs) {
  AttentionSizes sizes;
  if (inputs.size() == 1) {
    sizes.features = sizes.values =
        part_of(inputs[0], "queries, keys and values", keys.heads + 2 * keys.kv_heads);
    sizes.queries = sizes.keys = inputs[0].dims[0];
    sizes.rows = inputs[0].rows;
    return sizes;
  }
  require_inputs(inputs, 3);
  require_same_rows(inputs);
  sizes.rows = inputs[0].rows;
  sizes.features = part_of(inputs[0], "queries", keys.heads);
  const std::int64_t of_key = part_of(inputs[1], "keys", keys.kv_heads);
  sizes.queries = inputs[0].dims[0];
  sizes.keys = inputs[1].dims[0];
  if (inputs[2].dims.empty() || inputs[2].dims[0] != sizes.keys)
    throw ShapeMismatch("keys have shape " + to_text(inputs[1]) + " and values " + to_text(inputs[2]) +
                        "; expected as many positions of both");
  if (keys.shared == 0) {
    sizes.values = part_of(inputs[2], "values", keys.kv_heads);
    if (of_key != sizes.features)
      throw ShapeMismatch("queries have " + std::to_string(sizes.features) +
                          " features for each head and keys " + std::to_string(of_key) +
                          "; expected as many of both");
    return sizes;
  }
  const std::int64_t own = sizes.features - keys.shared;  // features of a key that are its head's own
  sizes.values = of_key - own;
  if (own < 1 || sizes.values < 1 || features_of(inputs[2], "shared features") != keys.shared)
    throw ShapeMismatch("queries, keys and shared features have shapes " + to_text(inputs[0]) + ", " +
                        to_text(inputs[1]) + " and " + to_text(inputs[2]) + "; expected " +
                        std::to_string(keys.shared) + " shared features, and more of a query");
  return sizes;
}

std::int64_t visible_scores(const AttentionKeys& keys, const AttentionSizes& sizes) {
  const std::int64_t all = checked_multiply(sizes.queries, sizes.keys);
  const std::int64_t window = keys.window == 0 ? sizes.keys : std::min(keys.window, sizes.keys);
  if (window < sizes.keys) return checked_multiply(sizes.queries, window);
  return keys.causal ? (all + 1) / 2 : all;
}

}  // namespace tbdsim
