#include "graphs/hugging_face/open_decoders.h"

#include <fmt/format.h>

#include "graphs/hugging_face/sizes.h"

namespace tbdsim::hugging_face {
namespace {

constexpr std::int64_t kPair = 2;  // layers of Gemma 2 that alternate
constexpr std::int64_t kSix = 6;   // of Gemma 3
constexpr std::int64_t kFour = 4;  // of OLMo 3

void set_biases(ConfigValues& v, bool queries, bool out, bool feed_forward) {
  v.set_flag("qkv_bias", queries);
  v.set_flag("out_bias", out);
  v.set_flag("bias", feed_forward);
}

// Writes how much of a head of `features` is turned by position.
void set_turned(ConfigValues& v, std::string_view key, std::int64_t features, double otherwise) {
  const std::int64_t rotated = turned_features(v, key, features, otherwise);
  v.set("rotated", rotated);
  v.set("turn", rotated < features ? "partly_turned" : "turned");
}

// Rotary positions in whole heads, RMS norms, a gated feed-forward part, no biases.
void like_llama(ConfigValues& v, bool tied) {
  llama_like(v, tied);
  set_biases(v, false, false, false);
  v.set("turn", "turned");
  v.set("norm", "rms_norm");
  v.set("order", "sequential");
  v.set("feed_forward", "gated");
}

// Layer norms and a plain feed-forward part of a GELU, with biases.
void plain(ConfigValues& v, const Heads& heads, std::int64_t filters) {
  set_heads(v, heads);
  v.set("words", v.count("vocab_size", kMostWords));
  v.set("filters", filters);
}

// Writes groups of `size` layers, of which the last sees all positions before it and the others a window.
void set_groups(ConfigValues& v, std::int64_t size) {
  const std::int64_t layers = v.count("num_hidden_layers", kMostLayers);
  v.require(layers >= size, "num_hidden_layers", fmt::format("{} or more: a group of them", size));
  const std::int64_t rest = layers % size;
  v.set("last_group", layers / size - 1);
  if (rest > 0) v.set("last_rest", rest - 1);
  v.set("last_windowed", size - 2);
  v.set("window", v.count("sliding_window", kMostPositions, 0));
  v.set("stack", rest > 0 ? "groups_and_rest" : "groups");
}

void require_no_biases(const ConfigValues& v) {
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
  v.require(!v.flag("mlp_bias", false), "mlp_bias", "false");
}

void require_full_heads(const ConfigValues& v) {
  v.require(!v.flag("qk_layernorm", false), "qk_layernorm", "false");
}

}  // namespace

void gpt_neox(ConfigValues& v) {
  const Heads heads = even_heads(v, "hidden_size", "num_attention_heads");
  plain(v, heads, v.count("intermediate_size", kMostWidth));
  set_turned(v, "rotary_pct", heads.features, 1.0 / 4);
  set_biases(v, v.flag("attention_bias", true), v.flag("attention_bias", true), true);
  v.set("order", v.flag("use_parallel_residual", true) ? "parallel_norms" : "sequential");
  v.set("head", v.flag("tie_word_embeddings", false) ? "tied_head" : "own_head");
  set_layers(v, "num_hidden_layers");
  set_length(v, "max_position_embeddings");
}

void gpt_j(ConfigValues& v) {
  const Heads heads = even_heads(v, "n_embd", "n_head");
  plain(v, heads, v.count("n_inner", kMostWidth, 4 * heads.width));
  const std::int64_t rotated = v.count("rotary_dim", kMostWidth, heads.features);
  v.require(rotated >= 2 && rotated <= heads.features && rotated % 2 == 0, "rotary_dim",
            fmt::format("an even number of a head's {} features", heads.features));
  v.set("rotated", rotated);
  set_biases(v, false, false, true);
  v.set("feed_forward", "plain_tanh");
  v.set("order", "parallel");
  v.set("head", "biased_head");
  v.require(!v.flag("tie_word_embeddings", false), "tie_word_embeddings", "false");
  set_layers(v, "n_layer");
  set_length(v, "n_positions");
}

void phi(ConfigValues& v) {
  llama_heads(v);
  set_turned(v, "partial_rotary_factor", features_of_a_head(v), 1.0 / 2);
  require_full_heads(v);
  v.set("filters", v.count("intermediate_size", kMostWidth));
  set_layers(v, "num_hidden_layers");
  v.set("feed_forward", "plain_tanh");
  v.set("order", "parallel");
  v.set("head", "biased_head");
  v.require(!v.flag("tie_word_embeddings", false), "tie_word_embeddings", "false");
}

void phi3(ConfigValues& v) {
  like_llama(v, false);
  set_turned(v, "partial_rotary_factor", features_of_a_head(v), 1);
  v.set("window", v.count("sliding_window", kMostPositions, 0));
}

void falcon(ConfigValues& v) {
  Heads heads = even_heads(v, "hidden_size", "num_attention_heads");
  const bool newer = v.flag("new_decoder_architecture", false);
  if (newer) heads.kv_heads = v.count("num_kv_heads", kMostHeads, heads.heads);
  if (!newer && v.flag("multi_query", true)) heads.kv_heads = 1;
  v.require(heads.heads % heads.kv_heads == 0, "num_kv_heads",
            fmt::format("a number that divides the {} heads of num_attention_heads", heads.heads));
  plain(v, heads, v.count("ffn_hidden_size", kMostWidth, 4 * heads.width));
  v.require(!v.flag("alibi", false), "alibi", "false");
  const bool biased = v.flag("bias", false);
  set_biases(v, biased, biased, biased);
  v.set("turn", "turned");
  const std::int64_t norms = v.count("num_ln_in_parallel_attn", 2, newer ? 2 : 1);
  const bool parallel = newer || v.flag("parallel_attn", true);
  v.set("order", !parallel ? "sequential" : newer && norms == 2 ? "parallel_norms" : "parallel");
  v.set("head", v.flag("tie_word_embeddings", true) ? "tied_head" : "own_head");
  set_layers(v, "num_hidden_layers");
  set_length(v, "max_position_embeddings");
}

void starcoder2(ConfigValues& v) {
  llama_like(v, true);
  const bool biased = v.flag("use_bias", true);
  set_biases(v, biased, biased, biased);
  v.set("turn", "turned");
  v.set("feed_forward", "plain_tanh");
  v.set("order", "sequential");
  v.set("window", v.count("sliding_window", kMostPositions, 0));
}

void stablelm(ConfigValues& v) {
  like_llama(v, false);
  set_turned(v, "partial_rotary_factor", features_of_a_head(v), 1.0 / 4);
  require_full_heads(v);
  v.require(!v.flag("use_parallel_residual", false), "use_parallel_residual", "false");
  v.set("norm", "layer_norm");
  v.set_flag("qkv_bias", v.flag("use_qkv_bias", false));
}

void olmo2(ConfigValues& v) {
  like_llama(v, false);
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
  v.set("turn", "wide_normed_and_turned");
  v.set("order", "post_norms");
}

void olmo3(ConfigValues& v) {
  olmo2(v);
  set_groups(v, kFour);
}

void olmoe(ConfigValues& v) {
  like_llama(v, false);
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
  v.set("turn", "wide_normed_and_turned");
  v.set("feed_forward", "experts");
  set_experts(v, "num_experts", "intermediate_size");
}

void cohere(ConfigValues& v) {
  like_llama(v, true);
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
  v.require(!v.flag("use_qk_norm", false), "use_qk_norm", "false");
  v.require(v.flag("tie_word_embeddings", true), "tie_word_embeddings", "true");
  v.set("norm", "plain_layer_norm");
  v.set("order", "parallel");
  v.set("head", "scaled_head");
}

void granite(ConfigValues& v) {
  like_llama(v, true);
  require_no_biases(v);
  v.set("embedded", "scaled_words");
  v.set("residual", "scaled_sum");
  v.set("head", "scaled_head");
  v.set("scores", v.flag("tie_word_embeddings", true) ? "tied_head" : "own_head");
}

void granite_moe(ConfigValues& v) {
  granite(v);
  v.set("feed_forward", "experts");
  set_experts(v, "num_local_experts", "intermediate_size");
}

void helium(ConfigValues& v) {
  like_llama(v, false);
  require_no_biases(v);
}

void phi_moe(ConfigValues& v) {
  like_llama(v, false);
  const bool biased = v.flag("attention_bias", false);
  set_biases(v, biased, biased, false);
  v.require(!v.flag("tie_word_embeddings", false), "tie_word_embeddings", "false");
  v.set("norm", "layer_norm");
  v.set("head", v.flag("lm_head_bias", false) ? "biased_head" : "own_head");
  v.set("feed_forward", "experts");
  set_experts(v, "num_local_experts", "intermediate_size");
}

void glm(ConfigValues& v) {
  like_llama(v, false);
  set_turned(v, "partial_rotary_factor", features_of_a_head(v), 1.0 / 2);
  v.set_flag("qkv_bias", v.flag("attention_bias", false));
}

void glm4(ConfigValues& v) {
  glm(v);
  v.set("order", "sandwich");
}

void gemma(ConfigValues& v) {
  like_llama(v, true);
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
  v.require(v.flag("tie_word_embeddings", true), "tie_word_embeddings", "true");
  v.set("gate", "gelu");
  v.set("embedded", "scaled_words");
}

void gemma2(ConfigValues& v) {
  gemma(v);
  const std::int64_t layers = v.count("num_hidden_layers", kMostLayers);
  v.require(layers % kPair == 0, "num_hidden_layers", "an even number: windows alternate");
  v.set("last_group", layers / kPair - 1);
  v.set("window", v.count("sliding_window", kMostPositions, 0));
  v.set("order", "sandwich");
  v.set("stack", "pairs");
  v.set("head", v.given("final_logit_softcapping") ? "capped_head" : "tied_head");
}

void gemma3(ConfigValues& v) {
  gemma(v);
  v.require(v.count("sliding_window_pattern", kMostLayers, kSix) == kSix, "sliding_window_pattern", "6");
  set_groups(v, kSix);
  v.set("turn", "normed_and_turned");
  v.set("order", "sandwich");
}

}  // namespace tbdsim::hugging_face
