#include "graphs/hugging_face/architectures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace tbdsim {
namespace {

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

// Decoders with rotary positions, RMS norms and a gated MLP, which have the same keys.
void llama_heads(ConfigValues& v) {
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
  v.set("head", v.flag("tie_word_embeddings", false) ? "tied_head" : "own_head");
  set_length(v, "max_position_embeddings");
}

void llama_like(ConfigValues& v) {
  llama_heads(v);
  v.set("filters", v.count("intermediate_size", kMostWidth));
  set_layers(v, "num_hidden_layers");
}

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

void qwen3(ConfigValues& v) {
  llama_like(v);
  v.require(!v.flag("attention_bias", false), "attention_bias", "false");
}

// Experts of which each position uses some.
void set_experts(ConfigValues& v, std::string_view number, std::string_view filters) {
  const std::int64_t experts = v.count(number, kMostHeads);
  v.set("experts", experts);
  v.set("top", v.count("num_experts_per_tok", experts));
  v.set("expert_filters", v.count(filters, kMostWidth));
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

// Decoders with layer norms and a plain MLP.
void set_plain(ConfigValues& v, const Heads& heads, std::int64_t filters) {
  set_heads(v, heads);
  v.set("joined_width", 3 * heads.width);
  v.set("filters", filters);
  v.set("words", v.count("vocab_size", kMostWords));
}

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

void bert(ConfigValues& v) {
  const Heads heads = even_heads(v, "hidden_size", "num_attention_heads");
  v.set("width", heads.width);
  v.set("heads", heads.heads);
  v.set("filters", v.count("intermediate_size", kMostWidth));
  v.set("words", v.count("vocab_size", kMostWords));
  v.set("positions", v.count("max_position_embeddings", kMostPositions));
  v.set("segments", v.count("type_vocab_size", kMostWidth, 2));
  set_layers(v, "num_hidden_layers");
  set_length(v, "max_position_embeddings");
}

void vit(ConfigValues& v) {
  const Heads heads = even_heads(v, "hidden_size", "num_attention_heads");
  const std::int64_t side = v.count("image_size", kMostWidth);
  const std::int64_t patch = v.count("patch_size", kMostWidth);
  v.require(side % patch == 0, "patch_size",
            fmt::format("a number that divides the image's {} pixels", side));
  v.set("width", heads.width);
  v.set("heads", heads.heads);
  v.set("joined_width", 3 * heads.width);
  v.set("filters", v.count("intermediate_size", kMostWidth));
  v.set("patch", patch);
  v.set("image_size", side);
  v.set("most_positions", side / patch * (side / patch) + 1);
  v.set("classes", v.entries("id2label", 2));
  set_layers(v, "num_hidden_layers");
}

void t5(ConfigValues& v) {
  const std::int64_t heads = v.count("num_heads", kMostHeads);
  v.set("width", v.count("d_model", kMostWidth));
  v.set("heads", heads);
  v.set("query_width", heads * v.count("d_kv", kMostWidth));
  v.set("filters", v.count("d_ff", kMostWidth));
  v.set("words", v.count("vocab_size", kMostWords));
  v.set("buckets", v.count("relative_attention_num_buckets", kMostWidth, 32));
  const std::int64_t layers = v.count("num_layers", kMostLayers);
  v.require(layers > 1, "num_layers", "2 or more");
  v.require(v.count("num_decoder_layers", kMostLayers, layers) == layers, "num_decoder_layers",
            fmt::format("as many as num_layers, {}", layers));
  v.set("last_layer", layers - 1);
  v.require(v.text("feed_forward_proj", "relu") == "relu", "feed_forward_proj", "relu");
  v.require(v.flag("tie_word_embeddings", true), "tie_word_embeddings", "true");
  set_keep(v, "dropout_rate");
}

constexpr std::array<Architecture, 16> kArchitectures = {{
    {"LlamaForCausalLM", "llama", "3.2_1b", llama},
    {"MistralForCausalLM", "mistral", "7b", mistral},
    {"MixtralForCausalLM", "mixtral", "8x7b", mixtral},
    {"Qwen2ForCausalLM", "llama", "3.2_1b", qwen2},
    {"Qwen3ForCausalLM", "qwen3", "0.6b", qwen3},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "30b_a3b", qwen3_moe},
    {"GPT2LMHeadModel", "gpt2", "small", gpt2},
    {"OPTForCausalLM", "opt", "125m", opt},
    {"BloomForCausalLM", "bloom", "560m", bloom},
    {"MptForCausalLM", "mpt", "125m", mpt},
    {"DeepseekV2ForCausalLM", "deepseek", "v2_lite", deepseek},
    {"DeepseekV3ForCausalLM", "deepseek", "v2_lite", deepseek},
    {"GptOssForCausalLM", "gpt_oss", "20b", gpt_oss},
    {"BertForMaskedLM", "bert_base", "bert_base_lm", bert},
    {"ViTForImageClassification", "vit", "s_16", vit},
    {"T5ForConditionalGeneration", "t5", "small", t5},
}};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

bool ConfigValues::given(std::string_view key) const {
  return config_.has(key) && !config_.at(key).is_null();
}

std::int64_t ConfigValues::count(std::string_view key, std::int64_t most) const {
  if (!given(key)) config_.fail(fmt::format("a key {}", key));
  return config_.at(key).whole(1, most);
}

std::int64_t ConfigValues::count(std::string_view key, std::int64_t most, std::int64_t otherwise) const {
  return given(key) ? config_.at(key).whole(0, most) : otherwise;
}

bool ConfigValues::flag(std::string_view key, bool otherwise) const {
  return given(key) ? config_.at(key).flag() : otherwise;
}

double ConfigValues::number(std::string_view key, double otherwise) const {
  return given(key) ? config_.at(key).number() : otherwise;
}

std::string ConfigValues::text(std::string_view key, const std::string& otherwise) const {
  constexpr std::size_t kMostBytes = 200;
  return given(key) ? config_.at(key).text(kMostBytes) : otherwise;
}

std::int64_t ConfigValues::entries(std::string_view key, std::int64_t otherwise) const {
  if (!given(key)) return otherwise;
  if (!config_.at(key).is_map()) config_.at(key).fail("a map");
  return static_cast<std::int64_t>(config_.at(key).size());
}

void ConfigValues::require(bool holds, std::string_view key, const std::string& expected) const {
  if (holds) return;
  if (given(key)) config_.at(key).fail(expected);
  config_.fail(fmt::format("{}: {}", key, expected));
}

}  // namespace tbdsim
