#include "simulate/layout/decoder_of_graph.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "graphs/layer.h"
#include "hwspecs/base/error.h"
#include "simulate/layout/layout_reader.h"

namespace tbdsim {
namespace {

[[noreturn]] void no_decoder(const Model& model, std::string_view lacking) {
  throw UsageError(fmt::format(
      "{} cannot be laid out: it has {}; expected blocks of attention between an embedding "
      "and scores of words, as of llama3_8b ('tbd-sim scaling' predicts whole replicas of any model)",
      model.name, lacking));
}

std::int64_t outputs_of(const GraphLayer& layer) { return layer.output.dims.back(); }
std::int64_t inputs_of(const GraphLayer& layer) { return layer.input_shapes.front().dims.back(); }

bool has_bias(const GraphLayer& layer) {
  return std::any_of(layer.parameters.begin(), layer.parameters.end(),
                     [](const ParameterTensor& p) { return p.name == "bias"; });
}

const Precision& bf16() {
  return *std::find_if(kPrecisions.begin(), kPrecisions.end(),
                       [](const Precision& p) { return p.name == "bf16"; });
}

// Work of the forward pass of an attention layer in one kernel.
AttentionShape attention_of(const GraphLayer& layer, const Model& model) {
  const Lowering lowering;
  std::vector<Kernel> kernels;
  layer.spec.layer->forward(layer.site(), {lowering, bf16()}, kernels);
  for (const Kernel& kernel : kernels) {
    if (const auto* shape = std::get_if<AttentionShape>(&kernel.shape)) return *shape;
  }
  no_decoder(model, "attention that keeps its scores");
}

class Reader {
 public:
  explicit Reader(const Model& model) : model_(model) { shape_.name = model.name; }

  DecoderShape read() {
    if (model_.graphs.size() != 1) no_decoder(model_, "several graphs");
    shape_.bias = shape_.gated = false;
    for (const GraphLayer& layer : model_.graphs.begin()->second.layers) read_layer(layer);
    if (shape_.layers == 0) no_decoder(model_, "no attention");
    if (shape_.vocabulary == 0) no_decoder(model_, "no scores of words");
    shape_.dense_layers = shape_.mixture() ? shape_.layers - mixed_ : 0;
    shape_ = completed(shape_);
    require_all_parameters();
    return shape_;
  }

 private:
  // Encoders, second attentions and other layers have parameters that the sizes found do not account for.
  void require_all_parameters() const {
    constexpr double kToleranceOfParameters = 0.03;  // biases of some products alone
    double number = 0;
    for (const GraphLayer& layer : model_.graphs.begin()->second.layers) {
      for (const ParameterTensor& p : layer.parameters) number += static_cast<double>(p.elements);
    }
    const double found = total_parameters(shape_);
    if (std::abs(found / number - 1) > kToleranceOfParameters)
      no_decoder(model_,
                 fmt::format("{:.4g} parameters, of which blocks that are alike have {:.4g}", number, found));
  }

  void read_layer(const GraphLayer& layer) {
    const std::string& type = layer.spec.type;
    if (shape_.hidden == 0 && type != "embedding") {
      if (type == "attention" || type == "learned_positions") no_decoder(model_, "no embedding of words");
      return;
    }
    if (type == "attention_scores") no_decoder(model_, "attention in several layers, as encoders have it");
    if (type == "embedding") {
      shape_.hidden = outputs_of(layer);
    } else if (type == "learned_positions") {
      shape_.positions = layer.parameters.front().elements / shape_.hidden;
    } else if (type == "rms_norm") {
      shape_.rms_norm = true;
    } else if (type == "rotary") {
      shape_.rotary = true;
    } else if (type == "gated_activation") {
      shape_.gated = true;
    } else if (type == "dropout") {
      shape_.dropout = 0.1;
    } else if (type == "attention") {
      read_attention(layer);
    } else if (type == "router") {
      shape_.experts_per_token = outputs_of(layer);
      ++mixed_;
    } else if (type == "expert_products") {
      read_experts(layer);
    } else if (type == "fully_connected") {
      read_product(layer);
    }
  }

  void read_attention(const GraphLayer& layer) {
    ++shape_.layers;
    rows_ = 0;
    if (shape_.layers > 1) return;
    const AttentionShape attention = attention_of(layer, model_);
    shape_.heads = attention.heads.per_sample + attention.heads.fixed;
    shape_.kv_heads = shape_.heads / attention.queries_per_key;
    shape_.head_size = attention.features;
    shape_.value_size = attention.values;
    shape_.causal = attention.causal;
    if (latent_.size() < 2) return;
    // Products that nobody shares, before the first attention: queries' latent vector, that of keys and
    // values, the features of a key that all heads have.
    shape_.rotary_size = latent_.back();
    shape_.kv_rank = latent_[latent_.size() - 2];
    if (latent_.size() > 2) shape_.q_rank = latent_.front();
  }

  // The product back to the network's features has the inner ones whole, also where gate and up are one.
  void read_experts(const GraphLayer& layer) {
    if (outputs_of(layer) != shape_.hidden || shape_.expert_ffn > 0) return;
    shape_.expert_ffn = inputs_of(layer);
    shape_.experts = layer.parameters.front().elements / (shape_.expert_ffn * shape_.hidden);
  }

  void read_product(const GraphLayer& layer) {
    switch (layer.spec.shard) {
      case Sharding::vocabulary:
        shape_.vocabulary = outputs_of(layer);
        shape_.tied = layer.tied_to >= 0;
        return;
      case Sharding::none:
        if (shape_.layers == 0) latent_.push_back(outputs_of(layer));
        return;
      case Sharding::rows:
        shape_.bias = shape_.bias || has_bias(layer);
        // The first after an attention is its own, the second that of the feed-forward layer.
        if (++rows_ != 2) return;
        (mixed_ > 0 ? shape_.shared_ffn : shape_.ffn) = inputs_of(layer);
        return;
      default:
        return;
    }
  }

  const Model& model_;
  DecoderShape shape_;
  std::vector<std::int64_t> latent_;
  int rows_ = 0;
  std::int64_t mixed_ = 0;
};

}  // namespace

DecoderShape decoder_of(const Model& model) { return Reader(model).read(); }

}  // namespace tbdsim
