#include "graphs/hugging_face/plain_decoders.h"

#include <fmt/format.h>

#include "graphs/hugging_face/sizes.h"

namespace tbdsim::hugging_face {

namespace {

void set_plain(ConfigValues& v, const Heads& heads, std::int64_t filters) {
  set_heads(v, heads);
  v.set("joined_width", 3 * heads.width);
  v.set("filters", filters);
  v.set("words", v.count("vocab_size", kMostWords));
}

}  // namespace

void gpt2(ConfigValues& v) {
  const Heads heads = even_heads(v, "n_embd", "n_head");
  set_plain(v, heads, v.count("n_inner", kMostWidth, 4 * heads.width));
  set_layers(v, "n_layer");
  v.set("positions", v.count("n_positions", kMostPositions));
  set_length(v, "n_positions");
  set_keep(v, "attn_pdrop");
  const std::string activation = v.text("activation_function", "gelu_new");
  v.require(activation == "gelu_new", "activation_function", "gelu_new");
}

// GPT-2 with one head of keys and values.
void gpt_bigcode(ConfigValues& v) {
  Heads heads = even_heads(v, "n_embd", "n_head");
  if (v.flag("multi_query", true)) heads.kv_heads = 1;
  set_plain(v, heads, v.count("n_inner", kMostWidth, 4 * heads.width));
  v.set("attention", "separate_attention");
  set_layers(v, "n_layer");
  v.set("positions", v.count("n_positions", kMostPositions));
  set_length(v, "n_positions");
  set_keep(v, "attn_pdrop");
}

void opt(ConfigValues& v) {
  const Heads heads = even_heads(v, "hidden_size", "num_attention_heads");
  set_plain(v, heads, v.count("ffn_dim", kMostWidth));
  set_layers(v, "num_hidden_layers");
  v.set("positions", v.count("max_position_embeddings", kMostPositions) + 2);
  set_length(v, "max_position_embeddings");
  set_keep(v, "dropout");
  v.require(v.flag("do_layer_norm_before", true), "do_layer_norm_before", "true");
  v.require(v.count("word_embed_proj_dim", kMostWidth, heads.width) == heads.width, "word_embed_proj_dim",
            fmt::format("the width of {}", heads.width));
  v.require(v.text("activation_function", "relu") == "relu", "activation_function", "relu");
}

void bloom(ConfigValues& v) {
  const bool old = v.count("hidden_size", kMostWidth, 0) == 0;
  const Heads heads = even_heads(v, old ? "n_embed" : "hidden_size", old ? "num_attention_heads" : "n_head");
  set_plain(v, heads, 4 * heads.width);
  set_layers(v, "n_layer");
  set_keep(v, "attention_dropout");
}

void mpt(ConfigValues& v) {
  const Heads heads = even_heads(v, "d_model", "n_heads");
  set_plain(v, heads, heads.width * v.count("expansion_ratio", kMostWidth, 4));
  set_layers(v, "n_layers");
  set_length(v, "max_seq_len");
  v.require(v.flag("no_bias", true), "no_bias", "true");
}

}  // namespace tbdsim::hugging_face
