// multiply_add: y = a * b + c, element by element, as the cross layer x0 * (W x + b) + x of DCN V2 (Wang et
// al., arXiv 2008.13535). fused: one kernel forward, and one backward that writes the gradients of a and b
// (NVIDIA-Merlin/HugeCTR@2f2016f, HugeCTR/src/layers/multi_cross_layer.cu, fused_matrix_elementwise_dot_add
// and fused_mul_fma3); else a product and a sum, and two products. The gradient of c is that of y.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class MultiplyAdd : public Layer {
 public:
  explicit MultiplyAdd(SpecMap& keys) {
    if (const auto fused = keys.find("fused")) fused_ = fused->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 3);
    require_same_rows(inputs);
    for (const Shape& shape : inputs) {
      if (shape != inputs[0]) {
        throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(shape) +
                            "; expected one shape");
      }
    }
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (fused_) {
      over_map("mul_add", site, how, Phase::forward, {.flops = 2, .reads = 3, .writes = 1}, kernels);
      return;
    }
    over_map("mul", site, how, Phase::forward, {.flops = 1, .reads = 2, .writes = 1}, kernels);
    kernels.back().scratch_bytes = stored_bytes(site.output, how.precision);
    over_map("add", site, how, Phase::forward, {.flops = 1, .reads = 2, .writes = 1}, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (fused_) {
      over_map("mul_mul", site, how, Phase::backward_data, {.flops = 2, .reads = 3, .writes = 2}, kernels);
      return;
    }
    for (int factor = 0; factor < 2; ++factor)
      over_map("mul", site, how, Phase::backward_data, {.flops = 1, .reads = 2, .writes = 1}, kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  struct Work {
    std::int64_t flops, reads, writes;  // for each element
  };
  static void over_map(std::string_view op, const LayerContext& site, const LoweringContext& how, Phase phase,
                       const Work& work, std::vector<Kernel>& kernels) {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, op, site.output, work.flops,
                                    x * work.reads, x * work.writes));
  }

  bool fused_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_multiply_add(SpecMap& keys) { return std::make_unique<MultiplyAdd>(keys); }

}  // namespace tbdsim
