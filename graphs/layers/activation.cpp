// tanh, sigmoid: dx = dy * (1 - y^2) and dx = dy * y * (1 - y).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kForwardFlops = 1;   // the function counts as one
constexpr std::int64_t kBackwardFlops = 3;  // two products and a difference

class Activation : public Layer {
 public:
  explicit Activation(std::string_view op) : op_(op) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, op_, site.output, kForwardFlops, x, x));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    const std::int64_t reads = how.lowering.relu_keeps == ReluKeeps::input_and_output ? 3 : 2;
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, op_, site.output,
                                    kBackwardFlops, x * reads, x));
  }

  // The same operator as ReLU in the frameworks, so it keeps the same.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    const bool both = how.lowering.relu_keeps == ReluKeeps::input_and_output;
    return {.inputs = both && site.input_gradient, .output = site.input_gradient};
  }

 private:
  std::string_view op_;
};

}  // namespace

std::unique_ptr<Layer> make_tanh(SpecMap&) { return std::make_unique<Activation>("tanh"); }
std::unique_ptr<Layer> make_sigmoid(SpecMap&) { return std::make_unique<Activation>("sigmoid"); }

}  // namespace tbdsim
