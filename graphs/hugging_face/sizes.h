// Sizes that configs of several architectures give by the same keys.
#pragma once

#include <cstdint>
#include <string_view>

#include "graphs/hugging_face/config_values.h"

namespace tbdsim::hugging_face {

constexpr std::int64_t kMostWidth = 1'000'000;
constexpr std::int64_t kMostWords = 1'000'000'000;
constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostHeads = 100'000;
constexpr std::int64_t kMostPositions = 1'000'000'000;
constexpr std::int64_t kLongestByDefault = 8192;  // of positions: a config of 128 Ki is not trained at that

// Heads of queries, keys and values and the products that make them.
struct Heads {
  std::int64_t width, heads, kv_heads, features;
};

void set_heads(ConfigValues& v, const Heads& h);
// Heads of which each has a share of the width.
[[nodiscard]] Heads even_heads(const ConfigValues& v, std::string_view width_key, std::string_view heads_key);
void set_layers(ConfigValues& v, std::string_view key);
void set_length(ConfigValues& v, std::string_view key);
void set_keep(ConfigValues& v, std::string_view key);

// Keys of Llama, which most decoders share: heads, vocabulary and positions; with the feed-forward part and
// layers. `tied`: whether embeddings are the scores' weights where the config does not say so.
void llama_heads(ConfigValues& v, bool tied = false);
void llama_like(ConfigValues& v, bool tied = false);

// The features of one head, by head_dim or as its share of the width.
[[nodiscard]] std::int64_t features_of_a_head(const ConfigValues& v);
// The features of a head that are turned by position, of `features`: the share that `key` or rope_parameters
// give. Throws SpecError for a share outside 0 to 1 and for an odd number.
[[nodiscard]] std::int64_t turned_features(const ConfigValues& v, std::string_view key, std::int64_t features,
                                           double otherwise);

// Experts of which each position uses some: their number and width by these keys.
void set_experts(ConfigValues& v, std::string_view number, std::string_view filters);

}  // namespace tbdsim::hugging_face
