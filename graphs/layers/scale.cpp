// scale: y = c * x, by a constant or by a factor for each position; dx = c * dy.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/mirrored_layer.h"

namespace tbdsim {
namespace {

class Scale : public MirroredLayer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }
  // dx = c * dy is linear: the gradient of dy is c times that of dx.
  void double_backward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const override {
    run(site, how, Phase::backward_data, kernels);
  }
  // Frameworks that keep both factors of a product keep x, though the constant has no gradient.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    return {.inputs = site.input_gradient && how.lowering.product_keeps == SavedMatmulInputs::both};
  }

 private:
  void run(const LayerContext& site, const LoweringContext& how, Phase phase,
           std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "scale", site.output, 1, x, x));
  }
};

}  // namespace

std::unique_ptr<Layer> make_scale(SpecMap&) { return std::make_unique<Scale>(); }

}  // namespace tbdsim
