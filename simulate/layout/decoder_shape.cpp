#include "simulate/layout/decoder_shape.h"

namespace tbdsim {
namespace {

std::int64_t product_parameters(const DecoderShape& s, std::int64_t in, std::int64_t out) {
  return in * out + (s.bias ? out : 0);
}

std::int64_t feed_forward(const DecoderShape& s, std::int64_t inner) {
  const std::int64_t up = s.gated ? 2 * inner : inner;
  return product_parameters(s, s.hidden, up) + product_parameters(s, inner, s.hidden);
}

std::int64_t attention(const DecoderShape& s) {
  const std::int64_t queries = s.heads * s.head_size;
  const std::int64_t context = s.heads * s.value_size;
  const std::int64_t out = product_parameters(s, context, s.hidden);
  if (s.kv_rank == 0) {
    const std::int64_t keys_values = s.kv_heads * (s.head_size + s.value_size);
    return product_parameters(s, s.hidden, queries + keys_values) + out;
  }
  const std::int64_t from = s.q_rank > 0 ? s.q_rank : s.hidden;
  const std::int64_t down = (s.q_rank > 0 ? s.hidden * s.q_rank + s.q_rank : 0) +
                            s.hidden * (s.kv_rank + s.rotary_size) + s.kv_rank;
  const std::int64_t keys = s.heads * (s.head_size - s.rotary_size + s.value_size);
  return down + from * queries + s.kv_rank * keys + out;
}

}  // namespace

ParameterCounts parameter_counts(const DecoderShape& s) {
  const std::int64_t norm = s.hidden * (s.rms_norm ? 1 : 2);
  ParameterCounts counts;
  counts.attention = attention(s) + 2 * norm;
  counts.dense = feed_forward(s, s.ffn);
  counts.embedding = (s.vocabulary + s.positions) * s.hidden;
  counts.head = norm + (s.tied ? 0 : s.vocabulary * s.hidden);
  if (!s.mixture()) return counts;
  counts.expert = feed_forward(s, s.expert_ffn);
  counts.shared = s.hidden * s.experts + (s.shared_ffn > 0 ? feed_forward(s, s.shared_ffn) : 0);
  return counts;
}

double total_parameters(const DecoderShape& s) {
  const ParameterCounts c = parameter_counts(s);
  const auto mixed = static_cast<double>(s.mixture() ? s.layers - s.dense_layers : 0);
  const double layers = static_cast<double>(s.layers);
  return layers * static_cast<double>(c.attention) + (layers - mixed) * static_cast<double>(c.dense) +
         mixed * (static_cast<double>(c.expert) * static_cast<double>(s.experts) +
                  static_cast<double>(c.shared)) +
         static_cast<double>(c.embedding + c.head);
}

double model_flops_per_token(const DecoderShape& s, std::int64_t sequence, bool frozen) {
  const ParameterCounts c = parameter_counts(s);
  const auto mixed = static_cast<double>(s.mixture() ? s.layers - s.dense_layers : 0);
  const double layers = static_cast<double>(s.layers);
  const double active = layers * static_cast<double>(c.attention) +
                        (layers - mixed) * static_cast<double>(c.dense) +
                        mixed * (static_cast<double>(c.expert) * static_cast<double>(s.experts_per_token) +
                                 static_cast<double>(c.shared)) +
                        static_cast<double>(s.vocabulary) * static_cast<double>(s.hidden);
  const double scores =
      layers * static_cast<double>(s.heads * (s.head_size + s.value_size)) * static_cast<double>(sequence);
  return (frozen ? 4 : 6) * active + 6 * scores;
}

}  // namespace tbdsim
