// The sizes of a network of alike blocks of attention and feed-forward layers: what a layout divides.
#pragma once

#include <cstdint>
#include <string>

namespace tbdsim {

struct DecoderShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;    // heads of keys and values
  std::int64_t head_size = 0;   // features of a query and a key
  std::int64_t value_size = 0;  // features of a value
  std::int64_t ffn = 0;         // inner features of a dense block's feed-forward layer
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // learned positions; 0: none
  bool gated = false;          // three matrices in a feed-forward layer, not two
  bool rms_norm = false;
  bool rotary = false;
  bool bias = true;    // of the matrix products
  bool tied = false;   // the logits' weight is the embedding's
  double dropout = 0;  // 0: no kernels and masks of dropout
  bool causal = true;

  // Multi-head latent attention (DeepSeek-V2): ranks of the compressed queries, keys and values; 0: none.
  std::int64_t q_rank = 0;
  std::int64_t kv_rank = 0;
  std::int64_t rotary_size = 0;  // features of a key that carry the position, shared by all heads

  // Mixture of experts; 0 experts: dense.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_ffn = 0;    // inner features of the experts that every token passes
  std::int64_t dense_layers = 0;  // first blocks without experts

  [[nodiscard]] bool mixture() const { return experts > 0; }
};

// Numbers of parameters, norms and biases included.
struct ParameterCounts {
  std::int64_t attention = 0;  // of a block, with both norms
  std::int64_t dense = 0;      // feed-forward of a dense block
  std::int64_t expert = 0;     // one expert
  std::int64_t shared = 0;     // of a block with experts, that every token passes: shared experts, router
  std::int64_t embedding = 0;  // words and positions
  std::int64_t head = 0;       // logits and the last norm; without the weight where it is the embedding's
};
[[nodiscard]] ParameterCounts parameter_counts(const DecoderShape& shape);
[[nodiscard]] double total_parameters(const DecoderShape& shape);

// Flop that a token costs in a training step, as papers count: 6 for each parameter of a matrix product that
// it passes (4 where it is frozen: no gradient of the weight; adapters are left out) and 12 * heads * head
// size
// * length for scores and contexts, of which causal masks hide none.
[[nodiscard]] double model_flops_per_token(const DecoderShape& shape, std::int64_t sequence,
                                           bool frozen = false);

}  // namespace tbdsim
