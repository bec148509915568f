#include "graphs/hugging_face/sizes.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tbdsim::hugging_face {

void set_heads(ConfigValues& v, const Heads& h) {
  v.set("width", h.width);
  v.set("heads", h.heads);
  v.set("kv_heads", h.kv_heads);
  v.set("query_width", h.heads * h.features);
  v.set("key_width", h.kv_heads * h.features);
}

// Heads of which each has a share of the width.
Heads even_heads(const ConfigValues& v, std::string_view width_key, std::string_view heads_key) {
  const std::int64_t width = v.count(width_key, kMostWidth);
  const std::int64_t heads = v.count(heads_key, kMostHeads);
  v.require(width % heads == 0, heads_key, fmt::format("heads that divide the width of {}", width));
  return {width, heads, heads, width / heads};
}

void set_layers(ConfigValues& v, std::string_view key) { v.set("last_layer", v.count(key, kMostLayers) - 1); }

void set_length(ConfigValues& v, std::string_view key) {
  v.set("sequence_length", std::min(v.count(key, kMostPositions, kLongestByDefault), kLongestByDefault));
}

void set_keep(ConfigValues& v, std::string_view key) {
  const double drop = v.number(key, 0);
  v.require(drop >= 0 && drop < 1, key, "a probability below 1");
  v.set("keep", fmt::format("{}", 1 - drop).c_str());
}

void llama_heads(ConfigValues& v, bool tied) {
  const std::int64_t width = v.count("hidden_size", kMostWidth);
  const std::int64_t heads = v.count("num_attention_heads", kMostHeads);
  const std::int64_t kv_heads = v.count("num_key_value_heads", kMostHeads, heads);
  v.require(heads % kv_heads == 0, "num_key_value_heads",
            fmt::format("a number that divides the {} heads of num_attention_heads", heads));
  const std::int64_t own = v.count("head_dim", kMostWidth, 0);
  v.require(own > 0 || width % heads == 0, "num_attention_heads",
            fmt::format("heads that divide the width of {}, or a head_dim", width));
  set_heads(v, {width, heads, kv_heads, own > 0 ? own : width / heads});
  v.set("words", v.count("vocab_size", kMostWords));
  v.set("head", v.flag("tie_word_embeddings", tied) ? "tied_head" : "own_head");
  set_length(v, "max_position_embeddings");
}

void llama_like(ConfigValues& v, bool tied) {
  llama_heads(v, tied);
  v.set("filters", v.count("intermediate_size", kMostWidth));
  set_layers(v, "num_hidden_layers");
}

std::int64_t features_of_a_head(const ConfigValues& v) {
  return v.count("head_dim", kMostWidth,
                 v.count("hidden_size", kMostWidth) / v.count("num_attention_heads", kMostHeads));
}

std::int64_t turned_features(const ConfigValues& v, std::string_view key, std::int64_t features,
                             double otherwise) {
  const double share = v.number(key, v.number_in("rope_parameters", "partial_rotary_factor", otherwise));
  v.require(share > 0 && share <= 1, key, "a share of a head's features, above 0 and at most 1");
  const auto rotated = static_cast<std::int64_t>(std::floor(share * static_cast<double>(features)));
  v.require(rotated >= 2 && rotated % 2 == 0, key,
            fmt::format("a share that is an even number of a head's {} features", features));
  return rotated;
}

void set_experts(ConfigValues& v, std::string_view number, std::string_view filters) {
  const std::int64_t experts = v.count(number, kMostHeads);
  v.set("experts", experts);
  v.set("top", v.count("num_experts_per_tok", experts));
  v.set("expert_filters", v.count(filters, kMostWidth));
}

}  // namespace tbdsim::hugging_face
