// mean_loss: the mean over rows and elements; the gradient of each element is one constant.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class MeanLoss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return {fixed_size(1), {1}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Shape& x = site.inputs[0];
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::forward, "mean", x, 1,
                                    stored_bytes(x, how.precision), fixed_size(kFp32Bytes)));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Shape& x = site.inputs[0];
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", x, 0, {},
                                    stored_bytes(x, how.precision)));
  }

  // The gradient is a constant: nothing depends on it.
  void double_backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool is_loss() const override { return true; }
};

}  // namespace

std::unique_ptr<Layer> make_mean_loss(SpecMap&) { return std::make_unique<MeanLoss>(); }

}  // namespace tbdsim
