// gelu: y = x Phi(x) with the normal distribution Phi (Hendrycks and Gimpel, arXiv 1606.08415); dx = dy
// (Phi(x) + x phi(x)).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

// x / sqrt 2, erf, + 1, / 2, times x. Backward the first four again, x^2, / -2, exponential, / sqrt(2 pi),
// times x, sum, times dy.
constexpr std::int64_t kForwardFlops = 5;
constexpr std::int64_t kBackwardFlops = 11;

class Gelu : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }
  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, "gelu", site.output, kForwardFlops, x, x));
  }
  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "gelu", site.output,
                                    kBackwardFlops, x * 2, x));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.inputs = site.input_gradient};
  }
};

}  // namespace

std::unique_ptr<Layer> make_gelu(SpecMap&) { return std::make_unique<Gelu>(); }

}  // namespace tbdsim
