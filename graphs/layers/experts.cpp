// A mixture of experts (Shazeer et al., arXiv 1701.06538; Fedus et al., arXiv 2101.03961):
//   router            weights of each position's `top` experts, from a score for every expert
//   dispatch          positions x features copied once for each of their experts, sorted by expert; with a
//                     `capacity`, as many rows as `capacity` times an even share, however experts are chosen
//   expert_products   one product for each expert with its own rows, in one call
//   combine           each position's rows times its weights, summed
// Experts are taken to get equally many rows.
#include <cmath>

#include "graphs/layers/layer_types.h"
#include "graphs/layers/narrow_operands.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostExperts = 1'000'000;
constexpr std::int64_t kMostOutputs = 1'000'000'000;

void require_positions(const Shape& shape, const char* what) {
  if (shape.dims.size() != 2)
    throw ShapeMismatch(std::string(what) + " have shape " + to_text(shape) +
                        "; expected positions x features");
}

class Router : public Layer {
 public:
  explicit Router(SpecMap& keys) : top_(keys.at("top").count(1, kMostExperts)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    require_positions(inputs[0], "scores");
    if (inputs[0].dims[1] < top_)
      throw ShapeMismatch("input has scores of " + std::to_string(inputs[0].dims[1]) +
                          " experts; expected at least " + std::to_string(top_));
    return {inputs[0].rows, {inputs[0].dims[0], top_}};
  }
  // Softmax, the largest `top`, the number of rows of each expert.
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Shape& x = site.inputs[0];
    kernels.push_back(softmax_kernel(Phase::forward, "softmax", x, how.precision, kSoftmaxFlops, 1));
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::forward, "top_k", x, 1,
                                    stored_bytes(x, how.precision),
                                    stored_bytes(site.output, how.precision)));
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::forward, "count", site.output, 1,
                                    elements(site.output) * kIndexBytes,
                                    fixed_size(x.dims[1] * kIndexBytes)));
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Shape& x = site.inputs[0];
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "scatter", x, 0,
                                    stored_bytes(site.output, how.precision),
                                    stored_bytes(x, how.precision)));
    kernels.push_back(softmax_kernel(Phase::backward_data, "softmax", x, how.precision, 4, 2));
  }
  // The softmax and the chosen experts.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    return {.extra_bytes = stored_bytes(site.inputs[0], how.precision) + elements(site.output) * kIndexBytes};
  }

 private:
  std::int64_t top_;
};

// Rows of a tensor read in one order and written in another.
Kernel moved_rows(std::string_view op, Phase phase, const Shape& rows, std::int64_t flops, const Size& read,
                  const Size& written) {
  Kernel kernel = memory_kernel(KernelKind::gather, phase, op, rows, flops,
                                read + positions(rows) * kIndexBytes, written);
  kernel.shape = position_matrix(rows);
  return kernel;
}

class Dispatch : public Layer {
 public:
  explicit Dispatch(SpecMap& keys) {
    if (const auto capacity = keys.find("capacity")) capacity_ = capacity->number(0.01, 1000);
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    require_positions(inputs[0], "positions");
    require_positions(inputs[1], "weights");
    const std::int64_t rows = checked_multiply(inputs[0].dims[0], inputs[1].dims[1]);
    return {inputs[0].rows,
            {static_cast<std::int64_t>(std::ceil(capacity_ * static_cast<double>(rows))), inputs[0].dims[1]}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size bytes = stored_bytes(site.output, how.precision);
    kernels.push_back(moved_rows("permute", Phase::forward, site.output, 0, bytes, bytes));
  }
  // Copies of a position are summed.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    kernels.push_back(moved_rows("unpermute", Phase::backward_data, site.output, 1,
                                 stored_bytes(site.output, how.precision),
                                 stored_bytes(site.inputs[0], how.precision)));
  }
  // The place of each row.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.extra_bytes = positions(site.output) * kIndexBytes};
  }

 private:
  double capacity_ = 1;
};

class ExpertProducts : public Layer {
 public:
  explicit ExpertProducts(SpecMap& keys)
      : experts_(keys.at("experts").count(1, kMostExperts)),
        outputs_(keys.at("outputs").count(1, kMostOutputs)) {
    if (const auto bias = keys.find("bias")) bias_ = bias->flag();
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    require_positions(inputs[0], "rows");
    return {inputs[0].rows, {inputs[0].dims[0], outputs_}};
  }
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t weights = checked_multiply(last_dimension(inputs[0]), outputs_);
    std::vector<ParameterTensor> tensors{{"weight", checked_multiply(experts_, weights), true, true}};
    if (bias_) tensors.push_back({"bias", checked_multiply(experts_, outputs_), true, true});
    return tensors;
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    narrow_forward(size(site), how.precision, kernels);
    kernels.push_back(product(site, how, Phase::forward));
    if (!bias_) return;
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, "bias_add", site.output, 1, y * 2, y));
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    narrow_backward(size(site), site, how.precision, kernels);
    if (site.weight_gradient) {
      if (bias_)
        kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "bias_gradient",
                                        site.output, 1, stored_bytes(site.output, how.precision),
                                        fixed_size(experts_ * outputs_ * how.precision.storage_bytes)));
      kernels.push_back(product(site, how, Phase::backward_weights));
    }
    if (site.input_gradient) kernels.push_back(product(site, how, Phase::backward_data));
  }
  // Scaled by blocks, the operand of the weights' gradient is kept, not the input.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (how.precision.scaling != Scaling::blocks || !site.weight_gradient)
      return {.inputs = site.weight_gradient};
    return {.extra_bytes = block_bytes(elements(site.inputs[0]), how.precision)};
  }

 private:
  [[nodiscard]] LinearSize size(const LayerContext& site) const {
    return {positions(site.output), last_dimension(site.inputs[0]), outputs_, experts_};
  }
  [[nodiscard]] Kernel product(const LayerContext& site, const LoweringContext& how, Phase phase) const {
    const std::int64_t in = last_dimension(site.inputs[0]);
    const Size rows = positions(site.output);
    const auto share = [&](std::int64_t n) { return (n + experts_ - 1) / experts_; };
    const Size each{share(rows.fixed), share(rows.per_sample)};  // rows of one expert
    const Size x = operand_bytes(elements(site.inputs[0]), how.precision);
    const Size y = operand_bytes(elements(site.output), how.precision);
    const std::int64_t weights = checked_multiply(in, outputs_);
    const Size all = fixed_size(checked_multiply(experts_, weights));
    const Size operand = operand_bytes(all, how.precision);
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.phase = phase;
    kernel.op = "grouped_matmul";
    kernel.math = how.precision.weight_product_math();
    kernel.macs = rows * weights;
    kernel.flops = kernel.macs * 2;
    GemmShape shape;
    shape.batch = fixed_size(experts_);
    shape.grouped = true;
    if (phase == Phase::forward) {
      kernel.read_bytes = x + operand;
      kernel.written_bytes = stored_bytes(site.output, how.precision);
      shape.m = fixed_size(outputs_), shape.n = each, shape.k = fixed_size(in), shape.transpose_a = true;
    } else if (phase == Phase::backward_data) {
      kernel.read_bytes = y + operand;
      kernel.written_bytes = stored_bytes(site.inputs[0], how.precision);
      shape.m = fixed_size(in), shape.n = each, shape.k = fixed_size(outputs_);
    } else {
      kernel.read_bytes = x + y;
      kernel.written_bytes = all * how.precision.product_gradient_bytes();
      shape.m = fixed_size(in), shape.n = fixed_size(outputs_), shape.k = each, shape.transpose_b = true;
    }
    kernel.shape = shape;
    return kernel;
  }

  std::int64_t experts_, outputs_;
  bool bias_ = false;
};

class Combine : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    require_positions(inputs[0], "rows");
    require_positions(inputs[1], "weights");
    return {inputs[0].rows, {inputs[1].dims[0], inputs[0].dims[1]}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size y = stored_bytes(site.inputs[0], how.precision);
    kernels.push_back(moved_rows("unpermute", Phase::forward, site.inputs[0], 2,
                                 y + stored_bytes(site.inputs[1], how.precision),
                                 stored_bytes(site.output, how.precision)));
  }
  // Rows' gradients are the position's times the weight; the weight's is the sum over features of row times
  // gradient.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size y = stored_bytes(site.inputs[0], how.precision);
    kernels.push_back(moved_rows("permute", Phase::backward_data, site.inputs[0], 4, y * 2, y));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }
};

}  // namespace

std::unique_ptr<Layer> make_router(SpecMap& keys) { return std::make_unique<Router>(keys); }
std::unique_ptr<Layer> make_dispatch(SpecMap& keys) { return std::make_unique<Dispatch>(keys); }
std::unique_ptr<Layer> make_expert_products(SpecMap& keys) { return std::make_unique<ExpertProducts>(keys); }
std::unique_ptr<Layer> make_combine(SpecMap&) { return std::make_unique<Combine>(); }

}  // namespace tbdsim
