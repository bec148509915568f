// learned_positions: sum with a trained row for each position of the sequence, the same for all samples.
// class_token: one more position in front, a trained row of features. image_positions: pixels of an image as
// positions, channels as their features.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostPositions = 1'000'000'000;

void require_positions(std::span<const Shape> inputs) {
  require_inputs(inputs, 1);
  if (inputs[0].dims.size() != 2)
    throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected positions x features");
}

Shape one_sample(const Shape& shape) { return {fixed_size(1), shape.dims}; }

class LearnedPositions : public Layer {
 public:
  explicit LearnedPositions(SpecMap& keys) : positions_(keys.at("positions").count(1, kMostPositions)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_positions(inputs);
    if (inputs[0].dims[0] > positions_)
      throw ShapeMismatch("sequence has " + std::to_string(inputs[0].dims[0]) +
                          " positions; expected at most " + std::to_string(positions_) +
                          ", of which the table has rows");
    return inputs[0];
  }
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    return {{.name = "table", .elements = checked_multiply(positions_, last_dimension(inputs[0]))}};
  }
  // The rows are looked up once and added to every sample.
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Shape rows = one_sample(site.output);
    const Size row_bytes = stored_bytes(rows, how.precision);
    kernels.push_back(memory_kernel(KernelKind::gather, Phase::forward, "embedding", rows, 0,
                                    elements(rows) * how.precision.weight_bytes, row_bytes));
    kernels.back().shape = position_matrix(rows);
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "broadcast_add", site.output, 1,
                                    x + row_bytes, x));
    kernels.back().shape = position_matrix(site.output);
  }
  // The sum over samples, put into the table's gradient.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.weight_gradient) return;
    const Shape rows = one_sample(site.output);
    const Size row_bytes = stored_bytes(rows, how.precision);
    const Size gradient = elements(rows) * how.precision.gradient_bytes;
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "sum", site.output, 1,
                                    stored_bytes(site.output, how.precision), row_bytes));
    kernels.push_back(memory_kernel(KernelKind::gather, Phase::backward_weights, "embedding", rows, 1,
                                    row_bytes + gradient, gradient));
    kernels.back().shape = position_matrix(rows);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool passes_gradient_through() const override { return true; }

 private:
  std::int64_t positions_;
};

class ClassToken : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_positions(inputs);
    return {inputs[0].rows, {inputs[0].dims[0] + 1, inputs[0].dims[1]}};
  }
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    return {{"token", last_dimension(inputs[0])}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "concat", site.output, 0, y, y));
  }
  // The input's gradient is a view of the output's; the token's a sum over samples.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.weight_gradient) return;
    const Shape tokens{site.output.rows, {last_dimension(site.output)}};
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "sum", tokens, 1,
                                    stored_bytes(tokens, how.precision),
                                    fixed_size(last_dimension(site.output) * how.precision.gradient_bytes)));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool gradient_is_view(const Lowering&) const override { return true; }
};

class ImagePositions : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const std::vector<std::int64_t>& dims = image_input(inputs).dims;
    return {inputs[0].rows, {checked_multiply(dims[1], dims[2]), dims[0]}};
  }
  void forward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool passes_gradient_through() const override { return true; }
  [[nodiscard]] bool is_view(const Lowering&) const override { return true; }
};

}  // namespace

std::unique_ptr<Layer> make_learned_positions(SpecMap& keys) {
  return std::make_unique<LearnedPositions>(keys);
}
std::unique_ptr<Layer> make_image_positions(SpecMap&) { return std::make_unique<ImagePositions>(); }
std::unique_ptr<Layer> make_class_token(SpecMap&) { return std::make_unique<ClassToken>(); }

}  // namespace tbdsim
