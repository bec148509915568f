// interpolate: a + u * (b - a), u drawn evenly from 0 to 1 for each row: the points at which WGAN-GP takes
// the critic's slope.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class Interpolate : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    if (inputs[0] != inputs[1]) {
      throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(inputs[1]) +
                          "; expected one shape");
    }
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    const Shape draws{site.output.rows, {}};
    const auto add = [&](std::string_view op, const Shape& shape, Size read, Size written) {
      kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, op, shape, 1, read, written));
    };
    add("random", draws, {}, stored_bytes(draws, how.precision));
    add("sub", site.output, x * 2, x);
    add("mul", site.output, x + stored_bytes(draws, how.precision), x);
    add("add", site.output, x * 2, x);
  }
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool differentiable() const override { return false; }
};

}  // namespace

std::unique_ptr<Layer> make_interpolate(SpecMap&) { return std::make_unique<Interpolate>(); }

}  // namespace tbdsim
