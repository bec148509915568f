// softmax_loss: p = softmax(x), loss = -log p[label] of each row or position; dx = p - one_hot(label).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class SoftmaxLoss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.empty() || inputs[0].dims.size() > 2) {
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) +
                          "; expected one score for each class, of a sample or of each position");
    }
    return inputs[0];
  }

  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::softmax, Phase::forward, "softmax_loss", site.output, kSoftmaxFlops, x, x));
    kernels.back().shape = position_matrix(site.output);
  }

  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::softmax, Phase::backward_data, "softmax_loss", site.output, 1, x, x));
    kernels.back().shape = position_matrix(site.output);
  }

  [[nodiscard]] bool is_loss() const override { return true; }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.output = site.input_gradient};
  }
};

}  // namespace

std::unique_ptr<Layer> make_softmax_loss(SpecMap&) { return std::make_unique<SoftmaxLoss>(); }

}  // namespace tbdsim
