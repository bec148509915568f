// softmax: y = exp(x) / sum exp(x) over the last dimension; dx = y (dy - sum y dy).
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

// y dy and its sum (2), difference and product (2).
constexpr std::int64_t kBackwardFlops = 4;

// TensorFlow 1.3: softmax_op_functor.h, whose every eval() and assignment is a kernel, and nn_grad.py
// _SoftmaxGrad.
constexpr Term kForward[] = {{"max", 1, 0}, {"exp", 1, 1}, {"sum", 1, 0}, {"inverse", 0, 0}, {"mul", 1, 1}};
constexpr Term kBackward[] = {{"mul", 2, 1}, {"sum", 1, 0}, {"sub", 1, 1}, {"mul", 2, 1}};

class Softmax : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    (void)last_dimension(inputs[0]);
    return inputs[0];
  }

  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      append_terms(kForward, sizes(site, 0), Phase::forward, how.precision, kernels);
    } else {
      add(site, how, Phase::forward, kSoftmaxFlops, 1, kernels);
    }
  }

  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (composite(how)) {
      append_terms(kBackward, sizes(site, 1), Phase::backward_data, how.precision, kernels);
    } else {
      add(site, how, Phase::backward_data, kBackwardFlops, 2, kernels);
    }
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.output = site.input_gradient};
  }

 private:
  static bool composite(const Expansion& how) { return how.lowering.softmax == Composition::composite; }

  // `scratch`: intermediate results of the input's size.
  static TermSizes sizes(const LayerSite& site, std::int64_t scratch) {
    return {elements(site.output), positions(site.output), elements(site.output) * scratch};
  }

  static void add(const LayerSite& site, const Expansion& how, Phase phase, std::int64_t flops,
                  std::int64_t reads, std::vector<Kernel>& kernels) {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::softmax, phase, "softmax", site.output, flops, x * reads, x));
    kernels.back().shape = position_matrix(site.output);
  }
};

}  // namespace

std::unique_ptr<Layer> make_softmax(SpecMap&) { return std::make_unique<Softmax>(); }

}  // namespace tbdsim
