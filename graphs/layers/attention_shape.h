// The sizes of an attention layer: heads, positions and features of its inputs, and which scores it computes.
#pragma once

#include <span>

#include "graphs/layer.h"
#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

// A sum with scores: nothing, a slope for each head times the distance (ALiBi, arXiv 2108.12409), or a
// trained number for each head and range of distances (T5, arXiv 1910.10683).
enum class ScoreBias { none, alibi, relative };

// Keys of a layer of type `attention`.
struct AttentionKeys {
  std::int64_t heads = 1;     // of queries
  std::int64_t kv_heads = 1;  // of keys and values
  std::int64_t shared = 0;    // features of every key that the third input gives to all heads
  std::int64_t window = 0;    // keys up to its own that a query sees; 0: all
  bool causal = false;
  bool drops = false;  // probabilities are dropped out
  // Where each operation is a kernel of its own: products read heads where they lie and scale, the softmax
  // masks, and gradients are written side by side (apex.contrib.multihead_attn).
  bool strided = false;
  bool sinks = false;  // a trained score for each head beside those of keys (GPT-OSS)
  ScoreBias bias = ScoreBias::none;
  std::int64_t buckets = 0;  // of relative distances, whose table this layer owns; 0: another layer's
};

[[nodiscard]] AttentionKeys read_attention_keys(SpecMap& keys);

struct AttentionSizes {
  Size rows;                              // samples
  std::int64_t queries = 0, keys = 0;     // positions
  std::int64_t features = 0, values = 0;  // of a key, of a value, of one head

  // Elements of all heads and samples.
  [[nodiscard]] Size q(const AttentionKeys& a) const { return of(a.heads, queries, features); }
  [[nodiscard]] Size k(std::int64_t heads) const { return of(heads, keys, features); }
  [[nodiscard]] Size v(std::int64_t heads) const { return of(heads, keys, values); }
  [[nodiscard]] Size output(const AttentionKeys& a) const { return of(a.heads, queries, values); }
  [[nodiscard]] Size of(std::int64_t heads, std::int64_t positions, std::int64_t each) const {
    return rows * checked_multiply(checked_multiply(heads, positions), each);
  }
};

// Throws ShapeMismatch for inputs that heads do not divide or that do not belong together: one input with
// queries, keys and values side by side; queries, keys and values; or queries, keys beside values of each
// head, and the features that all heads share.
[[nodiscard]] AttentionSizes attention_sizes(const AttentionKeys& keys, std::span<const Shape> inputs);

// Scores that a kernel computes which leaves out those that are masked, for one head and sample: half of them
// where causal, those within the window.
[[nodiscard]] std::int64_t visible_scores(const AttentionKeys& keys, const AttentionSizes& sizes);

}  // namespace tbdsim
