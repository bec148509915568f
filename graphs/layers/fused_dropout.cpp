// Dropout and what is before or behind it as one kernel, as a compiler fuses them; one byte of mask for each
// element is kept for the backward pass.
//
//   dropout_add    y = residual + dropout(x); the residual's gradient is that of y
//   relu_dropout   y = dropout(max(x, 0)); the mask is zero where x is
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class FusedDropout : public Layer {
 public:
  // `op`: the name of its kernels; `inputs`: tensors that it reads.
  FusedDropout(SpecMap& keys, std::string_view op, std::int64_t inputs) : op_(op), inputs_(inputs) {
    (void)keys.at("keep").number(0.0, 1.0);  // changes values, not costs
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, static_cast<std::size_t>(inputs_));
    require_same_rows(inputs);
    if (inputs.back() != inputs.front()) {
      throw ShapeMismatch("inputs have shapes " + to_text(inputs.front()) + " and " + to_text(inputs.back()) +
                          "; expected one shape");
    }
    return inputs.front();
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, op_, site.output, 3, x * inputs_,
                                    x + mask(site)));
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::backward_data, op_, site.output, 2, x + mask(site), x));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.extra_bytes = mask(site)};
  }

 private:
  static Size mask(const LayerContext& site) { return elements(site.output); }

  std::string_view op_;
  std::int64_t inputs_;
};

}  // namespace

std::unique_ptr<Layer> make_dropout_add(SpecMap& keys) {
  return std::make_unique<FusedDropout>(keys, "dropout_add", 2);
}

std::unique_ptr<Layer> make_relu_dropout(SpecMap& keys) {
  return std::make_unique<FusedDropout>(keys, "relu_dropout", 1);
}

}  // namespace tbdsim
