// smooth_l1_loss: the sum of w f(x - target), f(d) = d^2 / 2 near zero and |d| - 1/2 beyond, over every
// number of a row. Frameworks make it of element-wise operations: MXNet of these
// without the sum, others of about as many.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

constexpr Term kForward[] = {{"sub", 2, 1}, {"smooth_l1", 1, 1}, {"mul", 2, 1}, {"sum", 1, 0}};
constexpr Term kBackward[] = {{"mul", 2, 1}, {"smooth_l1", 2, 1}};

class SmoothL1Loss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
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

std::unique_ptr<Layer> make_smooth_l1_loss(SpecMap&) { return std::make_unique<SmoothL1Loss>(); }

}  // namespace tbdsim
