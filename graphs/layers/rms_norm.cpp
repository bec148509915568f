// rms_norm: y = gamma * x / sqrt(mean(x^2) + eps), of each position over its features (Zhang and Sennrich,
// arXiv 1910.07467), or over those of each of its heads, which share one gamma.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/row_norm.h"
#include "graphs/layers/wide_terms.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostHeads = 1'000'000;

// Operations of a fused kernel on each element. Forward: square and sum (2), normalise (1), scale (1).
// Backward by the input: dy * gamma (1), its product with x and the sum (2), dx (4); by the weights:
// normalised x (1), product with dy and the sum (2).
constexpr std::int64_t kForwardFlops = 4;
constexpr std::int64_t kBackwardFlops = 7;
constexpr std::int64_t kWeightFlops = 3;

// Composite: transformers, models/llama/modeling_llama.py LlamaRMSNorm: x.to(float32), pow(2).mean(-1), +
// eps, rsqrt, times, .to(input_dtype), gamma times that; and what autograd makes of it (derivatives.yaml of
// pow, mean, rsqrt).
constexpr WideTerm kForward[] = {
    {"cast", 1, 0, 0, 1, true}, {"pow", 0, 1, 0, 1},        {"mean", 0, 1},     {"add_epsilon"}, {"rsqrt"},
    {"mul", 0, 1, 0, 1},        {"cast", 0, 1, 1, 0, true}, {"mul", 1, 0, 1, 0}};
constexpr WideTerm kBackwardWeights[] = {{"mul", 2, 0, 1, 0}, {"sum", 1}};
constexpr WideTerm kBackwardData[] = {{"mul", 1, 0, 1, 0},                           // dy * gamma
                                      {"cast", 1, 0, 0, 1, true},                    //
                                      {"mul", 0, 1, 0, 1},                           // ... * rsqrt
                                      {"mul", 0, 2, 0, 1},           {"sum", 0, 1},  // ... * x, summed
                                      {"mul", 0, 0, 0, 0, false, 3},                 // of rsqrt
                                      {"div", 0, 0, 0, 1},                           // of the mean
                                      {"pow", 0, 1, 0, 1},           {"mul", 0, 1, 0, 1},
                                      {"mul", 0, 2, 0, 1},  // of the square
                                      {"add", 0, 2, 0, 1},           {"cast", 0, 1, 1, 0, true}};
constexpr std::int64_t kForwardScratch = 1;
constexpr std::int64_t kBackwardScratch = 2;

class RmsNorm : public Layer {
 public:
  explicit RmsNorm(SpecMap& keys) {
    if (const auto heads = keys.find("heads")) heads_ = heads->count(1, kMostHeads);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    const std::int64_t features = last_dimension(inputs[0]);
    if (features % heads_ != 0)
      throw ShapeMismatch("input has " + std::to_string(features) + " features; expected a multiple of " +
                          std::to_string(heads_) + " heads");
    return inputs[0];
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    return {{"gamma", last_dimension(inputs[0]) / heads_}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      append_wide_terms(kForward, sizes(site, kForwardScratch), Phase::forward, how.precision, kernels);
    } else {
      append_forward(fused(site), how, kernels);
    }
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      const WideSizes at = sizes(site, kBackwardScratch);
      if (site.weight_gradient)
        append_wide_terms(kBackwardWeights, at, Phase::backward_weights, how.precision, kernels);
      if (site.input_gradient)
        append_wide_terms(kBackwardData, at, Phase::backward_data, how.precision, kernels);
      return;
    }
    append_backward(fused(site), site, how, kernels);
  }

  // Fused x and the inverse root; composite x in fp32 (x itself where storage is fp32) and the normalised x.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    const Size statistics = rows(site.output) * kFp32Bytes;
    if (!composite(how)) return {.inputs = true, .extra_bytes = statistics};
    const bool wide = is_wide(how.precision);
    const Size copy = wide ? Size{} : elements(site.output) * kFp32Bytes;
    return {.inputs = wide, .extra_bytes = copy + stored_bytes(site.output, how.precision) + statistics};
  }

 private:
  static bool composite(const LoweringContext& how) {
    return how.lowering.rms_norm == Composition::composite;
  }
  [[nodiscard]] Size rows(const Shape& x) const { return positions(x) * heads_; }
  [[nodiscard]] WideSizes sizes(const LayerContext& site, std::int64_t scratch) const {
    return {elements(site.output), rows(site.output), scratch};
  }
  [[nodiscard]] RowNorm fused(const LayerContext& site) const {
    return {.op = "rms_norm",
            .x = site.output,
            .rows = {rows(site.output), last_dimension(site.output) / heads_},
            .forward_flops = kForwardFlops,
            .data_flops = kBackwardFlops,
            .weight_flops = kWeightFlops};
  }

  std::int64_t heads_ = 1;
};

}  // namespace

std::unique_ptr<Layer> make_rms_norm(SpecMap& keys) { return std::make_unique<RmsNorm>(keys); }

}  // namespace tbdsim
