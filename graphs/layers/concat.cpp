// concat: inputs side by side along the first dimension (channels).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class Concat : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    if (inputs.size() < 2) {
      throw ShapeMismatch("has " + std::to_string(inputs.size()) +
                          " inputs; expected two or more, 'from: [a, b]'");
    }
    Shape joined = inputs[0];
    for (const Shape& shape : inputs.subspan(1)) {
      Shape same = shape;
      if (!same.dims.empty() && !joined.dims.empty()) same.dims[0] = joined.dims[0];
      if (same != joined || joined.dims.empty()) {
        throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(shape) +
                            "; expected shapes that differ in the channels only");
      }
      joined.dims[0] = checked_add(joined.dims[0], shape.dims[0]);
    }
    return joined;
  }

  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    copy(site, how, Phase::forward, kernels);
  }
  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) copy(site, how, Phase::backward_data, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite&, const Expansion&) const override { return {}; }

 private:
  static void copy(const LayerSite& site, const Expansion& how, Phase phase, std::vector<Kernel>& kernels) {
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "concat", site.output, 0, y, y));
  }
};

}  // namespace

std::unique_ptr<Layer> make_concat(SpecMap&) { return std::make_unique<Concat>(); }

}  // namespace tbdsim
