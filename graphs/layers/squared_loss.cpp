// squared_loss: loss = (x - target)^2 of each element, one target for each; dx = x - target.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/mirrored_layer.h"

namespace tbdsim {
namespace {

class SquaredLoss : public MirroredLayer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }
  [[nodiscard]] bool is_loss() const override { return true; }

 private:
  // x and the target, which is as large; difference and square, or product with the loss's gradient.
  void run(const LayerContext& site, const LoweringContext& how, Phase phase,
           std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, phase, "squared_loss", site.output, 2, x * 2, x));
  }
};

}  // namespace

std::unique_ptr<Layer> make_squared_loss(SpecMap&) { return std::make_unique<SquaredLoss>(); }

}  // namespace tbdsim
