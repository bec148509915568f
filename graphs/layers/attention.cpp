// attention_scores: S = Q * K' of each head, {heads, queries, keys} from {heads, queries, d} and {heads,
// keys, d}. attention_context: C = P * V of each head, {heads, queries, d} from {heads, queries, keys} and
// {heads, keys, d}.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

void require_heads(std::span<const Shape> inputs) {
  require_inputs(inputs, 2);
  require_same_rows(inputs);
  const Shape& a = inputs[0];
  const Shape& b = inputs[1];
  if (a.dims.size() != 3 || b.dims.size() != 3 || a.dims[0] != b.dims[0])
    throw ShapeMismatch("inputs have shapes " + to_text(a) + " and " + to_text(b) +
                        "; expected heads x positions x features, as many heads each");
}

Kernel product(const LoweringContext& how, Phase phase, GemmShape shape, const Shape& a, const Shape& b,
               const Shape& c) {
  shape.batch = a.rows * a.dims[0];
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.phase = phase;
  kernel.op = "batched_matmul";
  kernel.math = how.precision.math;
  kernel.macs = shape.batch * checked_multiply(checked_multiply(shape.m.fixed, shape.n.fixed), shape.k.fixed);
  kernel.flops = kernel.macs * 2;
  kernel.read_bytes = stored_bytes(a, how.precision) + stored_bytes(b, how.precision);
  kernel.written_bytes = stored_bytes(c, how.precision);
  kernel.shape = shape;
  return kernel;
}

// The three products between queries x keys, queries x features and keys x features. A row-major matrix is
// the transpose of a column-major one.
Kernel scores(const LoweringContext& how, Phase phase, const Shape& q, const Shape& k, const Shape& s) {
  return product(how, phase,
                 {.m = fixed_size(k.dims[1]),
                  .n = fixed_size(q.dims[1]),
                  .k = fixed_size(q.dims[2]),
                  .transpose_a = true},
                 k, q, s);
}
Kernel context(const LoweringContext& how, Phase phase, const Shape& s, const Shape& k, const Shape& q) {
  return product(how, phase,
                 {.m = fixed_size(k.dims[2]), .n = fixed_size(s.dims[1]), .k = fixed_size(s.dims[2])}, k, s,
                 q);
}
Kernel transposed_context(const LoweringContext& how, Phase phase, const Shape& s, const Shape& q,
                          const Shape& k) {
  return product(how, phase,
                 {.m = fixed_size(q.dims[2]),
                  .n = fixed_size(s.dims[2]),
                  .k = fixed_size(s.dims[1]),
                  .transpose_b = true},
                 q, s, k);
}

class AttentionProduct : public Layer {
 public:
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }
};

class AttentionScores : public AttentionProduct {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_heads(inputs);
    const Shape& q = inputs[0];
    const Shape& k = inputs[1];
    if (q.dims[2] != k.dims[2])
      throw ShapeMismatch("queries " + to_text(q) + " and keys " + to_text(k) +
                          " differ in their features; expected as many of both");
    return {q.rows, {q.dims[0], q.dims[1], k.dims[1]}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(scores(how, Phase::forward, site.inputs[0], site.inputs[1], site.output));
  }
  // dQ = dS * K, dK = dS' * Q.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Shape& q = site.inputs[0];
    const Shape& k = site.inputs[1];
    kernels.push_back(context(how, Phase::backward_data, site.output, k, q));
    kernels.push_back(transposed_context(how, Phase::backward_data, site.output, q, k));
  }
};

class AttentionContext : public AttentionProduct {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_heads(inputs);
    const Shape& p = inputs[0];
    const Shape& v = inputs[1];
    if (p.dims[2] != v.dims[1])
      throw ShapeMismatch("weights " + to_text(p) + " and values " + to_text(v) +
                          " differ in their keys; expected as many of both");
    return {p.rows, {p.dims[0], p.dims[1], v.dims[2]}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(context(how, Phase::forward, site.inputs[0], site.inputs[1], site.output));
  }
  // dP = dC * V', dV = P' * dC.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Shape& p = site.inputs[0];
    const Shape& v = site.inputs[1];
    kernels.push_back(scores(how, Phase::backward_data, site.output, v, p));
    kernels.push_back(transposed_context(how, Phase::backward_data, p, site.output, v));
  }
};

}  // namespace

std::unique_ptr<Layer> make_attention_scores(SpecMap&) { return std::make_unique<AttentionScores>(); }
std::unique_ptr<Layer> make_attention_context(SpecMap&) { return std::make_unique<AttentionContext>(); }

}  // namespace tbdsim
