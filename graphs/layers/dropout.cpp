// dropout: y = x * mask / keep, with one random byte of mask for each element, kept for the backward pass.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class Dropout : public Layer {
 public:
  explicit Dropout(SpecMap& keys) { (void)keys.at("keep").number(0.0, 1.0); }  // changes values, not costs

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "dropout", site.output, 2, x,
                                    x + elements(site.output)));
  }

  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "dropout", site.output, 2,
                                    x + elements(site.output), x));
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.extra_bytes = elements(site.output)};
  }
};

}  // namespace

std::unique_ptr<Layer> make_dropout(SpecMap& keys) { return std::make_unique<Dropout>(keys); }

}  // namespace tbdsim
