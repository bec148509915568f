#include "graphs/hugging_face/rotary_decoders.h"

#include <fmt/format.h>

#include "graphs/hugging_face/sizes.h"

namespace tbdsim::hugging_face {

void llama(ConfigValues& v) {
  llama_like(v);
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
  v.require(!v.flag("mlp_bias", false), "mlp_bias", "false");
}

void mistral(ConfigValues& v) {
  llama_like(v);
  v.set("window", v.count("sliding_window", kMostPositions, 0));
}

void qwen2(ConfigValues& v) {
  llama_like(v);
  v.set_flag("qkv_bias", true);
  v.require(!v.flag("use_sliding_window", false), "use_sliding_window", "false");
}

void seed_oss(ConfigValues& v) {
  llama_like(v);
  v.set_flag("qkv_bias", v.flag("attention_bias", true));
  v.require(!v.flag("attention_out_bias", false), "attention_out_bias", "false");
  v.require(!v.flag("mlp_bias", false), "mlp_bias", "false");
}

void ernie(ConfigValues& v) {
  llama_like(v, true);
  v.require(!v.flag("use_bias", false), "use_bias", "false");
}

void qwen3(ConfigValues& v) {
  llama_like(v);
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
}

void mixtral(ConfigValues& v) {
  llama_heads(v);
  set_layers(v, "num_hidden_layers");
  set_experts(v, "num_local_experts", "intermediate_size");
}

void qwen3_moe(ConfigValues& v) {
  llama_heads(v);
  set_layers(v, "num_hidden_layers");
  set_experts(v, v.given("num_experts") ? "num_experts" : "num_local_experts", "moe_intermediate_size");
  v.require(v.count("decoder_sparse_step", kMostLayers, 1) == 1, "decoder_sparse_step",
            "1: experts in every layer");
}

// An expert that all positions use, times the logistic function of a score of its own, beside the others.
void qwen2_moe(ConfigValues& v) {
  qwen3_moe(v);
  v.set("attention", "rotary_attention");
  v.set_flag("qkv_bias", v.flag("qkv_bias", true));
  v.set("feed_forward", "shared_and_routed");
  v.set("shared_filters", v.count("shared_expert_intermediate_size", kMostWidth));
}

void gpt_oss(ConfigValues& v) {
  llama_heads(v);
  const std::int64_t layers = v.count("num_hidden_layers", kMostLayers);
  v.require(layers % 2 == 0, "num_hidden_layers", "an even number: windows alternate");
  v.require(!v.flag("tie_word_embeddings", false), "tie_word_embeddings", "false");
  v.set("last_pair", layers / 2 - 1);
  const std::int64_t experts = v.count("num_local_experts", kMostHeads);
  v.set("experts", experts);
  v.set("top", v.count("num_experts_per_tok", experts));
  const std::int64_t filters = v.count("intermediate_size", kMostWidth);
  v.set("filters", filters);
  v.set("joined_filters", 2 * filters);
  v.set("window", v.count("sliding_window", kMostPositions, 0));
}

namespace {

// Writes layers of a plain feed-forward part, and behind them layers of experts beside one that all positions
// use.
void set_dense_and_mixed(ConfigValues& v) {
  v.set("words", v.count("vocab_size", kMostWords));
  v.set("filters", v.count("intermediate_size", kMostWidth));
  set_experts(v, "n_routed_experts", "moe_intermediate_size");
  v.set("shared_filters",
        v.count("n_shared_experts", kMostHeads) * v.count("moe_intermediate_size", kMostWidth));
  const std::int64_t layers = v.count("num_hidden_layers", kMostLayers);
  const std::int64_t dense = v.count("first_k_dense_replace", kMostLayers);
  v.require(dense < layers, "first_k_dense_replace", fmt::format("fewer than the {} layers", layers));
  v.set("last_dense", dense - 1);
  v.set("first_mixed", dense);
  v.set("last_layer", layers - 1);
  v.require(!v.flag("tie_word_embeddings", false), "tie_word_embeddings", "false");
  set_length(v, "max_position_embeddings");
}

}  // namespace

void deepseek(ConfigValues& v) {
  const std::int64_t heads = v.count("num_attention_heads", kMostHeads);
  const std::int64_t shared = v.count("qk_rope_head_dim", kMostWidth);
  const std::int64_t own = v.count("qk_nope_head_dim", kMostWidth);
  v.set("width", v.count("hidden_size", kMostWidth));
  v.set("heads", heads);
  v.set("kv_heads", heads);
  v.set("query_width", heads * (own + shared));
  v.set("latent_width", v.count("kv_lora_rank", kMostWidth));
  v.set("shared_width", shared);
  v.set("expanded_width", heads * (own + v.count("v_head_dim", kMostWidth)));
  const std::int64_t query_latent = v.count("q_lora_rank", kMostWidth, 0);
  if (query_latent > 0) v.set("query_latent", query_latent);
  v.set("queries", query_latent > 0 ? "latent_queries" : "plain_queries");
  set_dense_and_mixed(v);
}

void glm4_moe(ConfigValues& v) {
  llama_heads(v);
  set_dense_and_mixed(v);
  v.set("rotated", turned_features(v, "partial_rotary_factor", features_of_a_head(v), 1.0 / 2));
  v.set_flag("qkv_bias", v.flag("attention_bias", false));
  v.set("attention", v.flag("use_qk_norm", false) ? "normed_attention" : "partly_turned_attention");
}

void dots1(ConfigValues& v) {
  llama_heads(v);
  set_dense_and_mixed(v);
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
  v.set("rotated", features_of_a_head(v));
  v.set("attention", "normed_attention");
}

}  // namespace tbdsim::hugging_face
