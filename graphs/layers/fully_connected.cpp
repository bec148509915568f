// fully_connected: y = W * x + b for each row, x flattened; or for each position, x along the last dimension.
#include "graphs/layers/bias.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/linear_product.h"
#include "graphs/layers/narrow_operands.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostOutputs = 1'000'000'000;

class FullyConnected : public Layer {
 public:
  explicit FullyConnected(SpecMap& keys) : outputs_(keys.at("outputs").count(1, kMostOutputs)) {
    if (const auto bias = keys.find("bias")) bias_ = bias->flag();
    if (const auto position = keys.find("per_position")) per_position_ = position->flag();
    if (const auto narrow = keys.find("narrow")) narrow_ = narrow->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (!per_position_) return {inputs[0].rows, {outputs_}};
    Shape shape = inputs[0];
    (void)last_dimension(shape);
    shape.dims.back() = outputs_;
    return shape;
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    std::vector<ParameterTensor> tensors{{"weight", weights(inputs[0]), true, true}};
    if (bias_) tensors.push_back({"bias", outputs_, true, true});
    return tensors;
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    narrow_forward(size(site), precision_of(how), kernels);
    kernels.push_back(product(site, how, Phase::forward));
    const bool apart = how.lowering.linear_bias == Composition::composite;
    if (bias_ && apart) kernels.push_back(bias_add(site, how, position_matrix(site.output)));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    narrow_backward(size(site), site, precision_of(how), kernels);
    if (site.weight_gradient) {
      if (bias_) {
        kernels.push_back(bias_gradient(site, how.precision, outputs_, position_matrix(site.output)));
        if (how.lowering.aten_kernels) kernels.back().access = Access::columns;
      }
      kernels.push_back(product(site, how, Phase::backward_weights));
    }
    if (site.input_gradient) kernels.push_back(product(site, how, Phase::backward_data));
  }

  // dX = W * dY is linear in W and dY: with G the gradient of dX, that of dY is W * G and that of W is dY *
  // G.
  void double_backward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const override {
    kernels.push_back(product(site, how, Phase::forward));
    if (site.weight_gradient) kernels.push_back(product(site, how, Phase::backward_weights));
  }

  // Scaled by blocks, the operand of the weights' gradient is kept, not the input.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    const Precision precision = precision_of(how);
    if (precision.scaling != Scaling::blocks || !site.weight_gradient)
      return {.inputs = site.weight_gradient};
    return {.extra_bytes = block_bytes(elements(site.inputs[0]), precision)};
  }

 private:
  [[nodiscard]] std::int64_t inputs_of(const Shape& in) const {
    return per_position_ ? last_dimension(in) : elements_per_row(in);
  }
  [[nodiscard]] std::int64_t weights(const Shape& in) const {
    return checked_multiply(inputs_of(in), outputs_);
  }

  [[nodiscard]] Kernel product(const LayerContext& site, const LoweringContext& how, Phase phase) const {
    return linear_product(phase, positions(site.output), inputs_of(site.inputs[0]), outputs_,
                          precision_of(how));
  }
  [[nodiscard]] LinearSize size(const LayerContext& site) const {
    return {positions(site.output), inputs_of(site.inputs[0]), outputs_};
  }
  [[nodiscard]] Precision precision_of(const LoweringContext& how) const {
    Precision precision = how.precision;
    if (narrow_) return precision;
    precision.linear_math = {};
    precision.scaling = Scaling::none;
    return precision;
  }

  std::int64_t outputs_;
  bool bias_ = true;
  bool per_position_ = false;
  bool narrow_ = true;  // in fp8 or fp4 where products with weights are
};

}  // namespace

std::unique_ptr<Layer> make_fully_connected(SpecMap& keys) { return std::make_unique<FullyConnected>(keys); }

}  // namespace tbdsim
