// tanh: dx = dy (1 - y^2).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class Tanh : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "tanh", site.output, 1, x, x));
  }

  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::backward_data, "tanh", site.output, 3, x * 2, x));
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.output = site.input_gradient};
  }
};

}  // namespace

std::unique_ptr<Layer> make_tanh(SpecMap&) { return std::make_unique<Tanh>(); }

}  // namespace tbdsim
