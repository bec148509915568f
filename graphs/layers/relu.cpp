// relu: y = max(x, 0); dx = dy where y > 0.
#include <optional>

#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class Relu : public Layer {
 public:
  explicit Relu(SpecMap& keys) {
    if (const auto in_place = keys.find("in_place")) in_place_ = in_place->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "relu", site.output, 1, x, x));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    const std::int64_t reads = how.lowering.relu_keeps == ReluKeeps::input_and_output ? 3 : 2;
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::backward_data, "relu", site.output, 1, x * reads, x));
  }

  // The gradient of dX passes through the same mask as dY. Frameworks ignore that dX does not depend on X:
  // its gradient is a tensor of zeros.
  void double_backward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::backward_data, "relu", site.output, 1, x * 2, x));
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", site.output, 0, {}, x));
  }
  [[nodiscard]] bool input_gradient_depends_on_input() const override { return true; }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (!site.input_gradient) return {};
    if (runs_in_place(how.lowering)) return {.output = true};  // there is only one tensor to keep
    return {.inputs = how.lowering.relu_keeps != ReluKeeps::output,
            .output = how.lowering.relu_keeps != ReluKeeps::input};
  }

  [[nodiscard]] bool runs_in_place(const Lowering& lowering) const override {
    return in_place_.value_or(lowering.relu_in_place);
  }

 private:
  std::optional<bool> in_place_;  // the program's choice; empty: the framework's
};

}  // namespace

std::unique_ptr<Layer> make_relu(SpecMap& keys) { return std::make_unique<Relu>(keys); }

}  // namespace tbdsim
