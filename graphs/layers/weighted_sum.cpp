// weighted_sum: the context of an attention: for each row of weights over the positions of a memory the sum
// of its vectors. Inputs: weights {positions} or {queries, positions}, memory {positions, width}.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class WeightedSum : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    const Shape& weights = inputs[0];
    const Shape& memory = inputs[1];
    if (memory.dims.size() != 2 || weights.dims.empty() || weights.dims.size() > 2 ||
        weights.dims.back() != memory.dims[0]) {
      throw ShapeMismatch("inputs have shapes " + to_text(weights) + " and " + to_text(memory) +
                          "; expected weights of positions, and positions x width");
    }
    Shape output = weights;
    output.dims.back() = memory.dims[1];
    return output;
  }

  // A sample's matrices are column-major: C = M * W, dW = M' * dC, dM = dC * W'.
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Sizes s(site);
    kernels.push_back(product(site, how, Phase::forward, {.m = s.width, .n = s.queries, .k = s.positions}));
    const auto& p = how.precision;
    kernels.back().read_bytes = stored_bytes(site.inputs[0], p) + stored_bytes(site.inputs[1], p);
    kernels.back().written_bytes = stored_bytes(site.output, p);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Sizes s(site);
    const Size weights = stored_bytes(site.inputs[0], how.precision);
    const Size memory = stored_bytes(site.inputs[1], how.precision);
    const Size output = stored_bytes(site.output, how.precision);
    kernels.push_back(product(site, how, Phase::backward_data,
                              {.m = s.positions, .n = s.queries, .k = s.width, .transpose_a = true}));
    kernels.back().read_bytes = memory + output;
    kernels.back().written_bytes = weights;
    kernels.push_back(product(site, how, Phase::backward_data,
                              {.m = s.width, .n = s.positions, .k = s.queries, .transpose_b = true}));
    kernels.back().read_bytes = weights + output;
    kernels.back().written_bytes = memory;
    // With a single query it accumulates into the gradient of the other steps.
    if (site.inputs[0].dims.size() == 1 && how.lowering.step_gradients == GradientAccumulation::in_place)
      kernels.back().read_bytes += memory;
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  struct Sizes {
    explicit Sizes(const LayerContext& site)
        : queries(fixed_size(elements_per_row(site.output) / last_dimension(site.output))),
          positions(fixed_size(site.inputs[1].dims[0])),
          width(fixed_size(site.inputs[1].dims[1])) {}
    Size queries, positions, width;
  };

  static Kernel product(const LayerContext& site, const LoweringContext& how, Phase phase, GemmShape shape) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.phase = phase;
    kernel.op = "batched_matmul";
    kernel.math = how.precision.math;
    kernel.macs = elements(site.output) * site.inputs[1].dims[0];
    kernel.flops = kernel.macs * 2;
    shape.batch = site.output.rows;
    kernel.shape = shape;
    return kernel;
  }
};

}  // namespace

std::unique_ptr<Layer> make_weighted_sum(SpecMap&) { return std::make_unique<WeightedSum>(); }

}  // namespace tbdsim
