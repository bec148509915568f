// add: element-wise sum; the gradient of each input is the gradient of the output. `stacked: true`: the
// inputs are copied side by side and then summed, torch.stack(inputs).sum(0).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class Add : public Layer {
 public:
  explicit Add(SpecMap& keys) {
    if (const auto stacked = keys.find("stacked")) stacked_ = stacked->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    if (inputs.size() < 2) {
      throw ShapeMismatch("has " + std::to_string(inputs.size()) +
                          " inputs; expected two or more, 'from: [a, b]'");
    }
    require_same_rows(inputs);
    for (const Shape& shape : inputs) {
      if (shape != inputs[0]) {
        throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(shape) +
                            "; expected one shape");
      }
    }
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (stacked_) {
      const Size all =
          stored_bytes(site.output, how.precision) * static_cast<std::int64_t>(site.inputs.size());
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::forward, "stack", site.output, 0, all, all));
    }
    sum(site, how, Phase::forward, kernels);
  }

  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  // dY is passed to every input: its own gradient is the sum over them.
  void double_backward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const override {
    sum(site, how, Phase::backward_data, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool passes_gradient_through() const override { return true; }

 private:
  static void sum(const LayerContext& site, const LoweringContext& how, Phase phase,
                  std::vector<Kernel>& kernels) {
    const auto terms = static_cast<std::int64_t>(site.inputs.size());
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, phase, "add", site.output, terms - 1, x * terms, x));
  }

  bool stacked_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_add(SpecMap& keys) { return std::make_unique<Add>(keys); }

}  // namespace tbdsim
