// multiply: element-wise product of two inputs. Dimensions of the second may be 1: it is the same along them,
// as the weight of each channel in squeeze-and-excitation (Hu et al., CVPR 2018) is for all its pixels.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

bool can_spread(const Shape& from, const Shape& to) {
  if (from.dims.size() != to.dims.size()) return false;
  for (std::size_t i = 0; i < to.dims.size(); ++i) {
    if (from.dims[i] != to.dims[i] && from.dims[i] != 1) return false;
  }
  return true;
}

class Multiply : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    if (!can_spread(inputs[1], inputs[0])) {
      throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(inputs[1]) +
                          "; expected one shape, or dimensions of 1 in the second");
    }
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    product(site, Phase::forward, factor_bytes(site, how) + stored_bytes(site.output, how.precision), how,
            kernels);
  }

  // dx = dy * factor; the factor's gradient is dy * x, summed along the dimensions where it is the same.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    product(site, Phase::backward_data, x + factor_bytes(site, how), how, kernels);
    product(site, Phase::backward_data, x * 2, how, kernels);
    if (site.inputs[1] == site.inputs[0]) return;
    kernels.back().scratch_bytes = x;
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_data, "sum", site.output, 1, x,
                                    factor_bytes(site, how)));
    kernels.back().scratch_bytes = x;
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  static Size factor_bytes(const LayerContext& site, const LoweringContext& how) {
    return stored_bytes(site.inputs[1], how.precision);
  }
  static void product(const LayerContext& site, Phase phase, Size read, const LoweringContext& how,
                      std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "mul", site.output, 1, read,
                                    stored_bytes(site.output, how.precision)));
  }
};

}  // namespace

std::unique_ptr<Layer> make_multiply(SpecMap&) { return std::make_unique<Multiply>(); }

}  // namespace tbdsim
