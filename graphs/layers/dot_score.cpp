// dot_score: scores of a memory's positions for each query, query' * key, with a trained factor (Luong et
// al., EMNLP 2015; "scaled_luong" of tensorflow/nmt) unless `scale: false`. Inputs: query {width} or
// {queries, width}, keys {positions, width}.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class DotScore : public Layer {
 public:
  explicit DotScore(SpecMap& keys) {
    if (const auto scale = keys.find("scale")) scale_ = scale->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    const Shape& query = inputs[0];
    const Shape& keys = inputs[1];
    if (keys.dims.size() != 2 || query.dims.empty() || query.dims.size() > 2 ||
        query.dims.back() != keys.dims[1])
      throw ShapeMismatch("inputs have shapes " + to_text(query) + " and " + to_text(keys) +
                          "; expected a query, or several, and positions x the same width");
    Shape output = query;
    output.dims.back() = keys.dims[0];
    return output;
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape>) const override {
    if (!scale_) return {};
    return {{"scale", 1}};
  }

  // A sample's matrices are column-major: S = K' Q, dQ = K dS, dK = Q dS'.
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Sizes s(site, how);
    product(site, how, Phase::forward, {.m = s.positions, .n = s.queries, .k = s.width, .transpose_a = true},
            s.query + s.keys, s.scores, kernels);
    if (scale_) over_scores("scale", site, Phase::forward, s.scores, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    const Sizes s(site, how);
    if (scale_) over_scores("scale", site, Phase::backward_data, s.scores, kernels);
    if (scale_ && site.weight_gradient)
      kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "sum", site.output, 2,
                                      s.scores * 2, fixed_size(kFp32Bytes)));
    if (!site.input_gradient) return;
    product(site, how, Phase::backward_data, {.m = s.width, .n = s.queries, .k = s.positions},
            s.keys + s.scores, s.query, kernels);
    product(site, how, Phase::backward_data,
            {.m = s.width, .n = s.positions, .k = s.queries, .transpose_b = true}, s.query + s.scores, s.keys,
            kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient, .output = scale_ && site.weight_gradient};
  }

 private:
  struct Sizes {
    Sizes(const LayerContext& site, const LoweringContext& how)
        : queries(fixed_size(elements_per_row(site.output) / last_dimension(site.output))),
          positions(fixed_size(site.inputs[1].dims[0])),
          width(fixed_size(site.inputs[1].dims[1])),
          query(stored_bytes(site.inputs[0], how.precision)),
          keys(stored_bytes(site.inputs[1], how.precision)),
          scores(stored_bytes(site.output, how.precision)) {}
    Size queries, positions, width;
    Size query, keys, scores;  // bytes
  };

  static void product(const LayerContext& site, const LoweringContext& how, Phase phase, GemmShape shape,
                      Size read, Size written, std::vector<Kernel>& kernels) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.op = "batched_matmul";
    kernel.phase = phase;
    kernel.math = how.precision.math;
    kernel.macs = elements(site.output) * site.inputs[1].dims[1];
    kernel.flops = kernel.macs * 2;
    kernel.read_bytes = read;
    kernel.written_bytes = written;
    shape.batch = site.output.rows;
    kernel.shape = shape;
    kernels.push_back(kernel);
  }
  static void over_scores(std::string_view op, const LayerContext& site, Phase phase, Size bytes,
                          std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, op, site.output, 1, bytes, bytes));
  }

  bool scale_ = true;
};

}  // namespace

std::unique_ptr<Layer> make_dot_score(SpecMap& keys) { return std::make_unique<DotScore>(keys); }

}  // namespace tbdsim
