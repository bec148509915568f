// smoothed_softmax_loss: cross entropy of softmax(x) against labels of which a little is spread over all
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
constexpr std::int64_t kForwardFlops = 5;  // maximum, difference, exponential, sum, difference
constexpr std::int64_t kBackwardFlops = 4;

class SmoothedSoftmaxLoss : public Layer {
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
    if (composite(how)) {
      append_terms(kForward, sizes(site, 2), Phase::forward, how.precision, kernels);
      return;
    }
    add_log_softmax(site, how, Phase::forward, kForwardFlops, 1, kernels);
    append_terms(kSums, sizes(site, 0), Phase::forward, how.precision, kernels);
  }

  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (composite(how)) {
      append_terms(kBackward, sizes(site, 0), Phase::backward_data, how.precision, kernels);
      return;
    }
    append_terms(kSumGradients, sizes(site, 1), Phase::backward_data, how.precision, kernels);
    add_log_softmax(site, how, Phase::backward_data, kBackwardFlops, 2, kernels);
  }

  [[nodiscard]] bool is_loss() const override { return true; }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.output = site.input_gradient};
  }

 private:
  static bool composite(const Expansion& how) { return how.lowering.softmax == Composition::composite; }

  // `scratch`: intermediate results of the input's size.
  static TermSizes sizes(const LayerSite& site, std::int64_t scratch) {
    return {elements(site.output), positions(site.output), elements(site.output) * scratch};
  }

  static void add_log_softmax(const LayerSite& site, const Expansion& how, Phase phase, std::int64_t flops,
                              std::int64_t reads, std::vector<Kernel>& kernels) {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::softmax, phase, "log_softmax", site.output, flops, x * reads, x));
    kernels.back().shape = position_matrix(site.output);
  }
};

}  // namespace

std::unique_ptr<Layer> make_smoothed_softmax_loss(SpecMap&) {
  return std::make_unique<SmoothedSoftmaxLoss>();
}

}  // namespace tbdsim
