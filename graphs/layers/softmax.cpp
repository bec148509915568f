// softmax: y = exp(x) / sum exp(x) over the last dimension; dx = y * (dy - sum of y * dy).
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

// y * dy and its sum (2), difference and product (2).
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

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      append_terms(kForward, position_sizes(site.output, 0), Phase::forward, how.precision, kernels);
    } else {
      kernels.push_back(
          softmax_kernel(Phase::forward, "softmax", site.output, how.precision, kSoftmaxFlops, 1));
    }
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (composite(how)) {
      append_terms(kBackward, position_sizes(site.output, 1), Phase::backward_data, how.precision, kernels);
    } else {
      kernels.push_back(
          softmax_kernel(Phase::backward_data, "softmax", site.output, how.precision, kBackwardFlops, 2));
    }
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.output = site.input_gradient};
  }

 private:
  static bool composite(const LoweringContext& how) { return how.lowering.softmax == Composition::composite; }
};

}  // namespace

std::unique_ptr<Layer> make_softmax(SpecMap&) { return std::make_unique<Softmax>(); }

}  // namespace tbdsim
