// Sums with something smaller than x, whose gradient is that of the sum itself:
//   attention_mask   scores + a mask for each key of a sample, or causal: for each query and key
//   add_positions    x + a constant for each position and feature
//   add_embedding    x + one row of a table, the same for all
//   bias             x + b, of the features; where the layer before is tied to another and cannot have one
#include "graphs/layers/bias.h"
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostWords = 1'000'000'000;

class BroadcastAdd : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    (void)last_dimension(inputs[0]);
    return inputs[0];
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    const Size addend = added(site.output) * how.precision.storage_bytes;
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, op(), site.output, 1, x + addend, x));
    kernels.back().shape = position_matrix(site.output);
    kernels.back().access = broadcast_access(how.lowering);
  }
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool passes_gradient_through() const override { return true; }

 protected:
  [[nodiscard]] virtual std::string_view op() const { return "broadcast_add"; }
  [[nodiscard]] virtual Size added(const Shape& x) const = 0;  // elements that are added
};

class AttentionMask : public BroadcastAdd {
 public:
  explicit AttentionMask(SpecMap& keys) {
    if (const auto causal = keys.find("causal")) causal_ = causal->flag();
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.size() != 3)
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected heads x queries x keys");
    return inputs[0];
  }

 protected:
  [[nodiscard]] std::string_view op() const override { return "attention_mask"; }
  [[nodiscard]] Size added(const Shape& scores) const override {
    const std::int64_t queries = scores.dims[1];
    const std::int64_t keys = scores.dims[2];
    return causal_ ? fixed_size(checked_multiply(queries, keys)) : scores.rows * keys;
  }

 private:
  bool causal_ = false;
};

class AddPositions : public BroadcastAdd {
 protected:
  [[nodiscard]] Size added(const Shape& x) const override { return fixed_size(elements_per_row(x)); }
};

// Adds a parameter that is a row of features, or one row of it.
class AddFeatures : public BroadcastAdd {
 public:
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.weight_gradient) return;
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "bias_gradient",
                                    site.output, 1, stored_bytes(site.output, how.precision),
                                    added(site.output) * how.precision.storage_bytes));
    kernels.back().shape = position_matrix(site.output);
  }

 protected:
  [[nodiscard]] Size added(const Shape& x) const override { return fixed_size(last_dimension(x)); }
  [[nodiscard]] std::string_view op() const override { return "bias_add"; }
};

class Bias : public AddFeatures {
 public:
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    return {{"bias", last_dimension(inputs[0]), true, true}};
  }
};

class AddEmbedding : public AddFeatures {
 public:
  explicit AddEmbedding(SpecMap& keys) : words_(keys.at("words").count(1, kMostWords)) {}
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t features = last_dimension(inputs[0]);
    return {{.name = "table",
             .elements = checked_multiply(words_, features),
             .gradient_rows = fixed_size(features)}};
  }

 private:
  std::int64_t words_;
};

}  // namespace

std::unique_ptr<Layer> make_attention_mask(SpecMap& keys) { return std::make_unique<AttentionMask>(keys); }
std::unique_ptr<Layer> make_add_positions(SpecMap&) { return std::make_unique<AddPositions>(); }
std::unique_ptr<Layer> make_add_embedding(SpecMap& keys) { return std::make_unique<AddEmbedding>(keys); }
std::unique_ptr<Layer> make_bias(SpecMap&) { return std::make_unique<Bias>(); }

}  // namespace tbdsim
