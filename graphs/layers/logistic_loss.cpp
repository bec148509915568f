// logistic_loss: cross entropy of the logistic function of every score against its own target, dx =
// sigmoid(x) - target. Element-wise operations as PyTorch 1.3 composes it (ATen/native/Loss.cpp,
// binary_cross_entropy_with_logits), which is stable for large scores: (1 - t) x + m + log(e^-m + e^(-x -
// m)), m = max(-x, 0).
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

constexpr Term kForward[] = {{"neg", 1, 1, 3}, {"clamp", 1, 1},  {"sub", 1, 1},
                             {"mul", 2, 1},    {"exp", 1, 1, 2}, {"sub", 2, 1},
                             {"add", 2, 1, 3}, {"log", 1, 1},    {"mean", 1, 0}};
constexpr Term kBackward[] = {{"sigmoid", 1, 1}, {"sub", 2, 1}, {"mul", 1, 1}};

class LogisticLoss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    append_terms(kForward, sizes(site), Phase::forward, how.precision, kernels);
  }

  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    append_terms(kBackward, sizes(site), Phase::backward_data, how.precision, kernels);
  }

  [[nodiscard]] bool is_loss() const override { return true; }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  static TermSizes sizes(const LayerSite& site) {
    return {.elements = elements(site.output), .statistics = fixed_size(1), .scratch = {}};
  }
};

}  // namespace

std::unique_ptr<Layer> make_logistic_loss(SpecMap&) { return std::make_unique<LogisticLoss>(); }

}  // namespace tbdsim
