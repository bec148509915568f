// gated_activation: f(gate) * x (Shazeer, arXiv 2002.05202), f being SiLU or GELU. Reads the gate and x, or
// one tensor with both side by side.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

constexpr std::array<std::string_view, 2> kFunctions = {"silu", "gelu"};
constexpr std::int64_t kForwardFlops = 6;    // f (5) and the product
constexpr std::int64_t kBackwardFlops = 14;  // f and its derivative (12), two products

constexpr Term kForward[] = {{"gate", 1, 1}, {"mul", 2, 1}};
constexpr Term kBackward[] = {{"mul", 2, 1, 2}, {"gate", 2, 1}};
constexpr Term kJoinGradients[] = {{"concat", 2, 2}};

class GatedActivation : public Layer {
 public:
  explicit GatedActivation(SpecMap& keys) {
    (void)keys.at("function").one_of(kFunctions);
  }  // of about one cost

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    if (inputs.size() == 2) {
      require_same_rows(inputs);
      if (inputs[0] != inputs[1])
        throw ShapeMismatch("gate has shape " + to_text(inputs[0]) + " and the other input " +
                            to_text(inputs[1]) + "; expected one shape");
      return inputs[0];
    }
    require_inputs(inputs, 1);
    const std::int64_t both = last_dimension(inputs[0]);
    if (both % 2 != 0)
      throw ShapeMismatch("input has " + std::to_string(both) +
                          " features; expected an even number, gate and values");
    Shape shape = inputs[0];
    shape.dims.back() = both / 2;
    return shape;
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (how.lowering.gated == Composition::composite) {
      append_terms(kForward, {elements(site.output), {}, {}}, Phase::forward, how.precision, kernels);
    } else {
      fused(site, how, Phase::forward, kForwardFlops, 2, 1, kernels);
    }
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (how.lowering.gated == Composition::fused) {
      fused(site, how, Phase::backward_data, kBackwardFlops, 3, 2, kernels);
      return;
    }
    const TermSizes sizes{elements(site.output), {}, elements(site.output)};
    append_terms(kBackward, sizes, Phase::backward_data, how.precision, kernels);
    if (site.inputs.size() == 1)
      append_terms(kJoinGradients, sizes, Phase::backward_data, how.precision, kernels);
  }
  // Both inputs; composite f(gate), too.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (!site.input_gradient) return {};
    const bool composite = how.lowering.gated == Composition::composite;
    return {.inputs = true, .extra_bytes = composite ? stored_bytes(site.output, how.precision) : Size{}};
  }

 private:
  static void fused(const LayerContext& site, const LoweringContext& how, Phase phase, std::int64_t flops,
                    std::int64_t reads, std::int64_t writes, std::vector<Kernel>& kernels) {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, phase, "gated", site.output, flops, x * reads, x * writes));
  }
};

}  // namespace

std::unique_ptr<Layer> make_gated_activation(SpecMap& keys) {
  return std::make_unique<GatedActivation>(keys);
}

}  // namespace tbdsim
