// dropout: y = x * mask / keep, with one random byte of mask for each element, kept for the backward pass. A
// composite one keeps its mask as numbers.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

// TensorFlow 1.3: nn_ops.py dropout, floor(keep + uniform(0, 1)) * (x / keep), uniform being random numbers
// times a range plus its begin; math_grad.py.
constexpr Term kForward[] = {{"random_uniform", 0, 1}, {"mul", 1, 1}, {"add_begin", 1, 1}, {"add_keep", 1, 1},
                             {"floor", 1, 1},          {"div", 1, 1}, {"mul", 2, 1}};
constexpr Term kBackward[] = {{"mul", 2, 1}, {"div", 1, 1}};

class Dropout : public Layer {
 public:
  explicit Dropout(SpecMap& keys) { (void)keys.at("keep").number(0.0, 1.0); }  // changes values, not costs

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      append_terms(kForward, sizes(site), Phase::forward, how.precision, kernels);
      return;
    }
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "dropout", site.output, 2, x,
                                    x + elements(site.output)));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (composite(how)) {
      append_terms(kBackward, sizes(site), Phase::backward_data, how.precision, kernels);
      return;
    }
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "dropout", site.output, 2,
                                    x + elements(site.output), x));
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    return {.extra_bytes = composite(how) ? stored_bytes(site.output, how.precision) : elements(site.output)};
  }

 private:
  static bool composite(const LoweringContext& how) { return how.lowering.dropout == Composition::composite; }
  // One intermediate result is not kept: x / keep, dy * mask.
  static TermSizes sizes(const LayerContext& site) {
    return {elements(site.output), {}, elements(site.output)};
  }
};

}  // namespace

std::unique_ptr<Layer> make_dropout(SpecMap& keys) { return std::make_unique<Dropout>(keys); }

}  // namespace tbdsim
