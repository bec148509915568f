// rotary: pairs of features of every head turned by an angle that grows with the position (Su et al., arXiv
// 2104.09864); of all features of a head, or of `rotated` of them. Its gradient is turned back.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostHeads = 1'000'000;
constexpr std::int64_t kFlops = 3;  // two products and a sum for each element

// Composite: transformers, models/llama/modeling_llama.py apply_rotary_pos_emb, x * cos + cat(-x2, x1) * sin.
// Sizes are halves of x: a whole tensor counts 2. Backward each half's gradient is put into zeros.
constexpr Term kForward[] = {{"mul", 2, 2}, {"neg", 1, 1}, {"concat", 2, 2}, {"mul", 2, 2}, {"add", 4, 2}};
// Then it is copied to the layout of products.
constexpr Term kBackward[] = {{"mul", 2, 2, 2},  {"neg", 1, 1},    {"fill", 0, 2, 2},
                              {"copy", 1, 1, 2}, {"add", 4, 2, 2}, {"copy", 2, 2}};
constexpr std::int64_t kForwardScratch = 4;  // halves
constexpr std::int64_t kBackwardScratch = 6;
constexpr Term kJoin[] = {{"concat", 1, 1}};  // the turned features with those that are not

class Rotary : public Layer {
 public:
  explicit Rotary(SpecMap& keys) {
    if (const auto heads = keys.find("heads")) heads_ = heads->count(1, kMostHeads);
    if (const auto rotated = keys.find("rotated")) rotated_ = rotated->count(2, kLargestDimension);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    const std::int64_t features = last_dimension(inputs[0]);
    const std::int64_t each = features / heads_;
    if (features % heads_ != 0 || each % 2 != 0)
      throw ShapeMismatch("input has " + std::to_string(features) +
                          " features; expected an even number for each of " + std::to_string(heads_) +
                          " heads");
    if (rotated_ > each || rotated_ % 2 != 0)
      throw ShapeMismatch("heads have " + std::to_string(each) +
                          " features; expected an even number of at least " + std::to_string(rotated_) +
                          ", which are rotated");
    return inputs[0];
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    append(kForward, kForwardScratch, site, how, Phase::forward, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) append(kBackward, kBackwardScratch, site, how, Phase::backward_data, kernels);
  }
  // Sines and cosines are the same for all samples and layers: not counted.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }

 private:
  void append(std::span<const Term> terms, std::int64_t scratch, const LayerContext& site,
              const LoweringContext& how, Phase phase, std::vector<Kernel>& kernels) const {
    const Shape& x = site.output;
    if (how.lowering.rotary == Composition::fused) {
      const Size bytes = stored_bytes(x, how.precision);
      kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "rotary", x, kFlops, bytes, bytes));
      return;
    }
    const std::int64_t each = last_dimension(x) / heads_;
    const Size half = positions(x) * (heads_ * (rotated_ == 0 ? each : rotated_) / 2);
    append_terms(terms, {half, {}, half * scratch}, phase, how.precision, kernels);
    if (rotated_ > 0 && rotated_ < each)
      append_terms(kJoin, {elements(x), {}, {}}, phase, how.precision, kernels);
  }

  std::int64_t heads_ = 1;
  std::int64_t rotated_ = 0;  // 0: all features of a head
};

}  // namespace

std::unique_ptr<Layer> make_rotary(SpecMap& keys) { return std::make_unique<Rotary>(keys); }

}  // namespace tbdsim
