// Activations whose gradients need their input: relu6, y = clamp(x, 0, 6); silu, y = x * s(x) with the
// logistic function s, also called swish; hardswish, y = x * clamp(x + 3, 0, 6) / 6; hardsigmoid, y = clamp(x
// + 3, 0, 6) / 6.
//
// A program may overwrite the input (in_place). PyTorch then copies it first, to keep it
// (torchgen/packaged/autograd/derivatives.yaml has no formula of these by their output).
//
// A silu may be composite: the operators of tf.nn.swish and of EfficientNet-PyTorch's MemoryEfficientSwish,
// which keep x alone and compute s(x) again.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

// Operations on each element; a function counts as one, a clamp as two comparisons.
struct Operations {
  std::string_view op;
  std::int64_t forward = 0, backward = 0;
};
constexpr Operations kRelu6{"relu6", 2, 2};
constexpr Operations kSilu{"silu", 2, 6};                // dx = dy * s * (1 + x * (1 - s))
constexpr Operations kHardswish{"hardswish", 5, 6};      // dx = dy * (2 * x + 3) / 6 between -3 and 3
constexpr Operations kHardsigmoid{"hardsigmoid", 4, 3};  // dx = dy / 6 between -3 and 3

class InputActivation : public Layer {
 public:
  InputActivation(const Operations& operations, SpecMap& keys) : operations_(operations) {
    if (const auto in_place = keys.find("in_place")) in_place_ = in_place->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    if (in_place_ && how.lowering.relu_in_place)
      kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "copy", site.output, 0, x, x));
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, operations_.op, site.output,
                                    operations_.forward, x, x));
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, operations_.op,
                                    site.output, operations_.backward, x * 2, x));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  Operations operations_;
  bool in_place_ = false;
};

// y = x * s; dx = dy * (s * (1 + x * (1 - s))), of which s and one more result are alive at once.
constexpr Term kSiluForward[] = {{"sigmoid", 1, 1}, {"mul", 2, 1}};
constexpr Term kSiluBackward[] = {
    {"sigmoid", 1, 1}, {"sub", 1, 1}, {"mul", 2, 1}, {"add", 1, 1}, {"mul", 2, 1, 2}};

class CompositeSilu : public InputActivation {
 public:
  explicit CompositeSilu(SpecMap& keys) : InputActivation(kSilu, keys) {}

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    append_terms(kSiluForward, sizes(site, 1), Phase::forward, how.precision, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    append_terms(kSiluBackward, sizes(site, 2), Phase::backward_data, how.precision, kernels);
  }

 private:
  static TermSizes sizes(const LayerContext& site, std::int64_t scratch) {
    return {.elements = elements(site.output), .statistics = {}, .scratch = elements(site.output) * scratch};
  }
};

}  // namespace

std::unique_ptr<Layer> make_relu6(SpecMap& keys) { return std::make_unique<InputActivation>(kRelu6, keys); }
std::unique_ptr<Layer> make_silu(SpecMap& keys) {
  const auto composite = keys.find("composite");
  if (composite && composite->flag()) return std::make_unique<CompositeSilu>(keys);
  return std::make_unique<InputActivation>(kSilu, keys);
}
std::unique_ptr<Layer> make_hardswish(SpecMap& keys) {
  return std::make_unique<InputActivation>(kHardswish, keys);
}
std::unique_ptr<Layer> make_hardsigmoid(SpecMap& keys) {
  return std::make_unique<InputActivation>(kHardsigmoid, keys);
}

}  // namespace tbdsim
