// additive_score: scores of a memory's positions for each query, v * tanh(query + keys) (Bahdanau et al.,
// arXiv 1409.0473). Inputs: query {width} or {queries, width}, keys {positions, width}; the products that
// make them and the softmax behind are layers of their own. Keys:
//
//   score (matmul)   v tanh(...) as a matrix product, or sum: as a product and a sum over the last dimension
//   mask (none)      of padded positions. select: one kernel; sequence_mask: MXNet's operator, which copies
//                    and wants the positions first
//   normalize        v g / |v| and a bias in the tanh (Salimans and Kingma's weight normalisation)
//   recompute        the backward pass makes tanh(...) again instead of keeping it
//   fused            one kernel makes scores of queries and keys, one the gradients of both and of v, which
//                    makes tanh(...) again (mlcommons/training_results_v0.7@0a8a85a209c8, NVIDIA gnmt,
//                    seq2seq/csrc/attn_score_cuda_kernel.cu)
#include <algorithm>

#include "graphs/layers/bias.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/linear_product.h"

namespace tbdsim {
namespace {

enum class Score { matmul, sum };
enum class Mask { none, select, sequence_mask };

constexpr std::int64_t kTanhFlops = 1;  // as activation.cpp
constexpr std::int64_t kTanhGradientFlops = 3;

class AdditiveScore : public Layer {
 public:
  explicit AdditiveScore(SpecMap& keys) {
    if (const auto score = keys.find("score")) score_ = static_cast<Score>(score->one_of({"matmul", "sum"}));
    if (const auto mask = keys.find("mask"))
      mask_ = static_cast<Mask>(mask->one_of({"none", "select", "sequence_mask"}));
    if (const auto normalize = keys.find("normalize")) normalize_ = normalize->flag();
    if (const auto recompute = keys.find("recompute")) recompute_ = recompute->flag();
    if (const auto fused = keys.find("fused")) fused_ = fused->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    const Shape& query = inputs[0];
    const Shape& keys = inputs[1];
    if (keys.dims.size() != 2 || query.dims.empty() || query.dims.size() > 2 ||
        query.dims.back() != keys.dims[1]) {
      throw ShapeMismatch("inputs have shapes " + to_text(query) + " and " + to_text(keys) +
                          "; expected a query, or several, and positions x the same width");
    }
    Shape output = query;
    output.dims.back() = keys.dims[0];
    return output;
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t width = last_dimension(inputs[1]);
    std::vector<ParameterTensor> tensors{{"v", width, true, true}};
    if (normalize_) {
      tensors.push_back({"scale", 1, true, true});
      tensors.push_back({"bias", width, true, true});
    }
    return tensors;
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Parts parts(site, how);
    if (fused_) {
      one_kernel(Phase::forward, parts, parts.query + parts.keys, parts.scores, kernels);
      mask(Phase::forward, parts, kernels);
      return;
    }
    if (normalize_) normalize_v(Phase::forward, parts, kernels);
    hidden(Phase::forward, how, parts, kernels);
    if (score_ == Score::matmul) {
      kernels.push_back(linear_product(Phase::forward, elements(site.output), parts.width, 1, how.precision));
    } else {
      kernels.push_back(parts.over_hidden("multiply", Phase::forward, 1, 1, 1));
      kernels.push_back(parts.reduction(Phase::forward, parts.hidden, parts.scores));
      count_product(parts, kernels.back());
    }
    mask(Phase::forward, parts, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    const Parts parts(site, how);
    if (fused_) {
      mask(Phase::backward_data, parts, kernels);
      const Size inputs = parts.query + parts.keys;
      one_kernel(Phase::backward_data, parts, inputs + parts.scores, inputs, kernels);
      return;
    }
    if (recompute_) hidden(Phase::backward_data, how, parts, kernels);
    mask(Phase::backward_data, parts, kernels);
    if (score_ == Score::matmul) {
      if (site.weight_gradient) {
        kernels.push_back(
            linear_product(Phase::backward_weights, elements(site.output), parts.width, 1, how.precision));
      }
      kernels.push_back(
          linear_product(Phase::backward_data, elements(site.output), parts.width, 1, how.precision));
    } else {
      if (site.weight_gradient) {
        kernels.push_back(parts.over_hidden("multiply", Phase::backward_weights, 1, 1, 1));
        kernels.push_back(parts.reduction(Phase::backward_weights, parts.hidden, parts.v));
        count_product(parts, kernels.back());
      }
      kernels.push_back(parts.over_hidden("multiply", Phase::backward_data, 1, 0, 1));
      count_product(parts, kernels.back());
    }
    kernels.back().scratch_bytes = parts.hidden;
    const std::int64_t reads = keeps_both(how.lowering) ? 3 : 2;
    kernels.push_back(parts.over_hidden("tanh", Phase::backward_data, kTanhGradientFlops, reads, 1));
    kernels.back().scratch_bytes = parts.hidden;
    if (normalize_ && site.weight_gradient) {
      kernels.push_back(parts.reduction(Phase::backward_weights, parts.hidden, parts.v));  // of the bias
      normalize_v(Phase::backward_weights, parts, kernels);
    }
    if (site.input_gradient) gradients_of_inputs(site, how, parts, kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    const bool again = recompute_ || fused_;
    const std::int64_t maps = again ? 0 : keeps_both(how.lowering) ? 2 : 1;
    return {.inputs = again,
            .extra_bytes = Parts(site, how).hidden * maps,
            .extra_pieces = std::max<std::int64_t>(1, maps)};
  }

 private:
  // Sizes in bytes of what the layer works on.
  struct Parts {
    Parts(const LayerContext& site, const LoweringContext& how)
        : width(last_dimension(site.inputs[1])),
          query(stored_bytes(site.inputs[0], how.precision)),
          keys(stored_bytes(site.inputs[1], how.precision)),
          scores(stored_bytes(site.output, how.precision)),
          hidden(scores * width),
          v(fixed_size(width * how.precision.storage_bytes)),
          shape(site.output),
          elements_hidden(elements(site.output) * width) {}

    [[nodiscard]] Kernel over_hidden(std::string_view op, Phase phase, std::int64_t flops, std::int64_t reads,
                                     std::int64_t writes) const {
      return memory_kernel(KernelKind::elementwise, phase, op, {elements_hidden, {}}, flops, hidden * reads,
                           hidden * writes);
    }
    [[nodiscard]] Kernel reduction(Phase phase, Size from, Size to) const {
      return memory_kernel(KernelKind::reduction, phase, "sum", {elements_hidden, {}}, 1, from, to);
    }

    std::int64_t width;
    Size query, keys, scores, hidden, v;
    Shape shape;
    Size elements_hidden;
  };

  [[nodiscard]] static bool keeps_both(const Lowering& lowering) {
    return lowering.relu_keeps == ReluKeeps::input_and_output;
  }

  // A tanh, a product and a sum of each pair's features, none of which is written; backward the gradients of
  // tanh and of v beside them.
  static void one_kernel(Phase phase, const Parts& parts, Size read, Size written,
                         std::vector<Kernel>& kernels) {
    const std::int64_t flops = phase == Phase::forward ? kTanhFlops + 3 : kTanhFlops + kTanhGradientFlops + 5;
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "attention_score",
                                    {parts.elements_hidden, {}}, flops, read, written));
    count_product(parts, kernels.back());
  }

  // tanh(query + keys) for every pair.
  void hidden(Phase phase, const LoweringContext& how, const Parts& parts,
              std::vector<Kernel>& kernels) const {
    kernels.push_back(parts.over_hidden("broadcast_add", phase, 1, 0, 1));
    kernels.back().read_bytes = parts.query + parts.keys;
    kernels.back().scratch_bytes = parts.hidden;
    kernels.back().access = broadcast_access(how.lowering);
    if (normalize_) {
      kernels.push_back(parts.over_hidden("bias_add", phase, 1, 1, 1));
      kernels.back().scratch_bytes = parts.hidden;
      kernels.back().access = broadcast_access(how.lowering);
    }
    kernels.push_back(parts.over_hidden("tanh", phase, kTanhFlops, 1, 1));
    kernels.back().scratch_bytes = parts.hidden;
  }

  // The norm of v, a division, a product: small, but kernels each.
  static void normalize_v(Phase phase, const Parts& parts, std::vector<Kernel>& kernels) {
    const Shape v{fixed_size(parts.width), {}};
    kernels.push_back(memory_kernel(KernelKind::reduction, phase, "norm", v, 2, parts.v, {}));
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "divide", v, 1, parts.v, parts.v));
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "multiply", v, 1, parts.v, parts.v));
  }

  // Number of multiply-adds of v * tanh(...), as a GEMM or as a product and a sum.
  static void count_product(const Parts& parts, Kernel& kernel) { kernel.macs = parts.elements_hidden; }

  void mask(Phase phase, const Parts& parts, std::vector<Kernel>& kernels) const {
    if (mask_ == Mask::none) return;
    const auto pass = [&](KernelKind kind, std::string_view op) {
      kernels.push_back(memory_kernel(kind, phase, op, parts.shape, 0, parts.scores, parts.scores));
    };
    if (mask_ == Mask::select) {
      pass(KernelKind::elementwise, "select");
      return;
    }
    pass(KernelKind::transpose, "transpose");
    pass(KernelKind::elementwise, "copy");
    pass(KernelKind::elementwise, "sequence_mask");
    pass(KernelKind::transpose, "transpose");
  }

  // The query's gradient is a sum over the positions. The keys' gradient is a sum over the queries; with a
  // single query it accumulates into the gradient of other steps, unless another kernel of the step does
  // that.
  static void gradients_of_inputs(const LayerContext& site, const LoweringContext& how, const Parts& parts,
                                  std::vector<Kernel>& kernels) {
    kernels.push_back(parts.reduction(Phase::backward_data, parts.hidden, parts.query));
    if (site.inputs[0].dims.size() == 2) {
      kernels.push_back(parts.reduction(Phase::backward_data, parts.hidden, parts.keys));
    } else if (how.lowering.step_gradients == GradientAccumulation::in_place) {
      kernels.push_back(parts.over_hidden("accumulate", Phase::backward_data, 1, 2, 1));
    }
  }

  Score score_ = Score::matmul;
  Mask mask_ = Mask::none;
  bool normalize_ = false;
  bool recompute_ = false;
  bool fused_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_additive_score(SpecMap& keys) { return std::make_unique<AdditiveScore>(keys); }

}  // namespace tbdsim
