// actor_critic_loss: -A * log p[a] + (R - v)^2 / 2 - beta * H(p) of each row, p = softmax(x), A = R - v, H
// the entropy (Mnih et al., arXiv 1602.01783), every operation a kernel of its own.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

// Beside the softmax, as PyTorch 1.13 runs calibrate/runs/models/a3c.py: gather, exp, difference, products,
// sums, mean; and their gradients.
constexpr std::int64_t kForwardTerms = 14;
constexpr std::int64_t kBackwardTerms = 19;

class ActorCriticLoss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    if (inputs[0].dims.size() != 1 || inputs[1].dims != std::vector<std::int64_t>{1}) {
      throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(inputs[1]) +
                          "; expected a score for each action and one value");
    }
    return {inputs[0].rows, {1}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    softmax(site, how, Phase::forward, kSoftmaxFlops, kernels);
    terms(site, how, Phase::forward, kForwardTerms, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    terms(site, how, Phase::backward_data, kBackwardTerms, kernels);
    softmax(site, how, Phase::backward_data, 1, kernels);
  }

  // log p and its exponential.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (!site.input_gradient) return {};
    return {.inputs = true, .extra_bytes = stored_bytes(site.inputs[0], how.precision) * 2};
  }
  [[nodiscard]] bool is_loss() const override { return true; }

 private:
  static void softmax(const LayerContext& site, const LoweringContext& how, Phase phase, std::int64_t flops,
                      std::vector<Kernel>& kernels) {
    const Shape& x = site.inputs[0];
    const Size bytes = stored_bytes(x, how.precision);
    kernels.push_back(memory_kernel(KernelKind::softmax, phase, "softmax_loss", x, flops, bytes, bytes));
    kernels.back().shape = position_matrix(x);
    if (phase == Phase::backward_data) kernels.back().timed_as = KernelKind::elementwise;
  }

  static void terms(const LayerContext& site, const LoweringContext& how, Phase phase, std::int64_t times,
                    std::vector<Kernel>& kernels) {
    const Size bytes = stored_bytes(site.inputs[0], how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "mul", site.inputs[0], 1, bytes, bytes));
    kernels.back().repeat = times;
  }
};

}  // namespace

std::unique_ptr<Layer> make_actor_critic_loss(SpecMap&) { return std::make_unique<ActorCriticLoss>(); }

}  // namespace tbdsim
