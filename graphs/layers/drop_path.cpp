// drop_path: a sample's whole tensor is zeroed at random, else divided by the share that is kept (Huang et
// al., "Deep networks with stochastic depth", ECCV 2016): y = x * mask, with one number of mask a sample.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class DropPath : public Layer {
 public:
  explicit DropPath(SpecMap& keys) { (void)keys.at("keep").number(0.0, 1.0); }  // changes values, not costs

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Shape mask{site.output.rows, {}};
    const Size m = stored_bytes(mask, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "random", mask, 1, {}, m));
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "div", mask, 1, m, m));
    product(site, Phase::forward, how, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) product(site, Phase::backward_data, how, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    return {.extra_bytes = stored_bytes({site.output.rows, {}}, how.precision)};
  }

 private:
  static void product(const LayerContext& site, Phase phase, const LoweringContext& how,
                      std::vector<Kernel>& kernels) {
    const Size x = stored_bytes(site.output, how.precision);
    const Size mask = stored_bytes({site.output.rows, {}}, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "mul", site.output, 1, x + mask, x));
  }
};

}  // namespace

std::unique_ptr<Layer> make_drop_path(SpecMap& keys) { return std::make_unique<DropPath>(keys); }

}  // namespace tbdsim
