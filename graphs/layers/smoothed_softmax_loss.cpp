// smoothed_softmax_loss: cross entropy of softmax(x) against labels of which a small share is spread over all
// classes (Szegedy et al., arXiv 1512.00567), of each row or position.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

// Composite: tensor2tensor 1.2.7 common_layers.smoothing_cross_entropy makes targets for all classes, then
// TensorFlow 1.3 (xent_op.h, whose every eval() and assignment is a kernel) makes the loss and the gradient
// p - target; backward multiplies that by the loss's gradient. Small kernels weight and sum the losses.
constexpr Term kForward[] = {{"one_hot", 0, 1}, {"max", 1, 0}, {"sub", 1, 1},
                             {"exp_sum", 1, 0}, {"log", 0, 0}, {"mul", 2, 1},
                             {"sum", 1, 0},     {"sub", 2, 1}, {"mul", 0, 0, 4}};
constexpr Term kBackward[] = {{"mul", 0, 0, 2}, {"mul", 1, 1}};

// PyTorch 1.13, traced: cross_entropy with label_smoothing is a log-softmax, the likelihood of the label and
// the sum of all, whose gradients are written out and added before the log-softmax's own.
constexpr Term kSums[] = {{"sum", 1, 0}, {"mul", 0, 0, 10}};
constexpr Term kSumGradients[] = {{"mul", 0, 0, 11}, {"fill", 0, 1}, {"add", 1, 1}};
// apex.contrib.xentropy (`loss: fused`): one kernel that keeps the logarithm of each row's sum, and one that
// makes the gradient of the scores again from them.
constexpr Term kFusedForward[] = {{"softmax_xentropy", 1, 0}};
constexpr Term kFusedBackward[] = {{"softmax_xentropy", 1, 1}};
constexpr std::int64_t kForwardFlops = 5;  // maximum, difference, exponential, sum, difference
constexpr std::int64_t kBackwardFlops = 4;

class SmoothedSoftmaxLoss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return class_scores(inputs);
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      append_terms(kForward, position_sizes(site.output, 2), Phase::forward, how.precision, kernels);
      return;
    }
    if (fused(how)) {
      append_terms(kFusedForward, position_sizes(site.output, 0), Phase::forward, how.precision, kernels);
      return;
    }
    kernels.push_back(
        softmax_kernel(Phase::forward, "log_softmax", site.output, how.precision, kForwardFlops, 1));
    append_terms(kSums, position_sizes(site.output, 0), Phase::forward, how.precision, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (composite(how)) {
      append_terms(kBackward, position_sizes(site.output, 0), Phase::backward_data, how.precision, kernels);
      return;
    }
    if (fused(how)) {
      append_terms(kFusedBackward, position_sizes(site.output, 0), Phase::backward_data, how.precision,
                   kernels);
      return;
    }
    append_terms(kSumGradients, position_sizes(site.output, 1), Phase::backward_data, how.precision, kernels);
    kernels.push_back(
        softmax_kernel(Phase::backward_data, "log_softmax", site.output, how.precision, kBackwardFlops, 2));
  }

  [[nodiscard]] bool is_loss() const override { return true; }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (fused(how)) return {.inputs = site.input_gradient};
    return {.output = site.input_gradient};
  }

 private:
  static bool composite(const LoweringContext& how) { return how.lowering.softmax == Composition::composite; }
  static bool fused(const LoweringContext& how) { return how.lowering.loss == LossKernels::fused; }
};

}  // namespace

std::unique_ptr<Layer> make_smoothed_softmax_loss(SpecMap&) {
  return std::make_unique<SmoothedSoftmaxLoss>();
}

}  // namespace tbdsim
