// dot_interaction: products of every two of a sample's vectors {vectors, features} and the first vector
// itself beside them, padded to a multiple of eight (Naumov et al., "Deep Learning Recommendation Model",
// arXiv 1906.00091): Z = X X', of which the part below the diagonal is kept. Backward dX = (dZ + dZ') X, one
// product of the same size (NVIDIA DeepLearningExamples, DLRM, cuda_ext/dot_based_interact).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kAlignedTo = 8;

class DotInteraction : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.size() != 2)
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected vectors x features");
    const std::int64_t vectors = inputs[0].dims[0];
    const std::int64_t pairs = checked_multiply(vectors, vectors - 1) / 2;
    const std::int64_t values = checked_add(pairs, inputs[0].dims[1]);
    return {inputs[0].rows, {(values + kAlignedTo - 1) / kAlignedTo * kAlignedTo}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const std::int64_t vectors = site.inputs[0].dims[0];
    const std::int64_t features = site.inputs[0].dims[1];
    product(
        site, how, Phase::forward,
        {.m = fixed_size(vectors), .n = fixed_size(vectors), .k = fixed_size(features), .transpose_a = true},
        kernels);
    kernels.back().read_bytes = stored_bytes(site.inputs[0], how.precision);
    kernels.back().written_bytes = stored_bytes(site.output, how.precision);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const std::int64_t vectors = site.inputs[0].dims[0];
    const std::int64_t features = site.inputs[0].dims[1];
    product(site, how, Phase::backward_data,
            {.m = fixed_size(features), .n = fixed_size(vectors), .k = fixed_size(vectors)}, kernels);
    const Size x = stored_bytes(site.inputs[0], how.precision);
    kernels.back().read_bytes = x + stored_bytes(site.output, how.precision);
    kernels.back().written_bytes = x;
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  static void product(const LayerContext& site, const LoweringContext& how, Phase phase, GemmShape shape,
                      std::vector<Kernel>& kernels) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.op = "dot_interaction";
    kernel.phase = phase;
    kernel.math = how.precision.math;
    kernel.macs = elements(site.inputs[0]) * site.inputs[0].dims[0];
    kernel.flops = kernel.macs * 2;
    shape.batch = site.inputs[0].rows;
    kernel.shape = shape;
    kernels.push_back(kernel);
  }
};

}  // namespace

std::unique_ptr<Layer> make_dot_interaction(SpecMap&) { return std::make_unique<DotInteraction>(); }

}  // namespace tbdsim
