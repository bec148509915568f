#include "graphs/hugging_face/encoders.h"

#include <algorithm>

#include <fmt/format.h>

#include "graphs/hugging_face/sizes.h"

namespace tbdsim::hugging_face {

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

// BERT whose first two positions are of padding.
void roberta(ConfigValues& v) {
  constexpr std::int64_t kPadding = 2;
  bert(v);
  const std::int64_t positions = v.count("max_position_embeddings", kMostPositions);
  v.require(positions > kPadding, "max_position_embeddings", fmt::format("more than {}", kPadding));
  v.set("sequence_length", std::min(positions - kPadding, kLongestByDefault));
}

// A classifier of sequences or of words; two classes where the config names none.
void bert_classifier(ConfigValues& v) {
  bert(v);
  v.set("classes", v.entries("id2label", 2));
}

void roberta_classifier(ConfigValues& v) {
  roberta(v);
  v.set("classes", v.entries("id2label", 2));
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
  const std::string form = v.text("feed_forward_proj", "relu");
  v.require(form == "relu" || form == "gated-gelu", "feed_forward_proj", "relu or gated-gelu");
  v.set("feed_forward", form == "relu" ? "plain" : "gated");
  v.set("head", v.flag("tie_word_embeddings", true) ? "tied_head" : "own_head");
  set_keep(v, "dropout_rate");
}

}  // namespace tbdsim::hugging_face
