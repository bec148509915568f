// pairwise: sum, product, quotient or a function of two tensors, element by element; a dimension that is 1 in
// one of them is the same along it. The second may be a trained tensor of `trained` dimensions that all
// samples share.
#include <algorithm>
#include <array>
#include <optional>

#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

enum class Operation { add, subtract, multiply, divide, function };
constexpr std::array<std::string_view, 5> kNames = {"add", "subtract", "multiply", "divide", "function"};
constexpr std::array<std::string_view, 5> kKernels = {"add", "sub", "mul", "div", "pairwise"};

class Pairwise : public Layer {
 public:
  explicit Pairwise(SpecMap& keys) : operation_(static_cast<Operation>(keys.at("operation").one_of(kNames))) {
    const auto trained = keys.find("trained");
    if (!trained) return;
    trained_ = Shape{fixed_size(1), {}};
    for (const SpecNode& dim : trained->list()) trained_->dims.push_back(dim.count(1, kLargestDimension));
    if (trained_->dims.empty() || trained_->dims.size() > kMostDimensions)
      trained->fail("has " + std::to_string(trained_->dims.size()) + " dimensions; expected 1 to 8");
    elements_ = elements_per_row(*trained_);
    if (const auto elements = keys.find("elements")) elements_ = elements->count(0, kLargestDimension);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, trained_ ? 1 : 2);
    if (!trained_) require_same_rows(inputs);
    const Shape &a = inputs[0], &b = second(inputs);
    const auto mismatch = [&] {
      throw ShapeMismatch("shapes " + to_text(a) + " and " + to_text(b) +
                          "; expected dimensions that are equal, or 1 in one of them");
    };
    if (a.dims.size() != b.dims.size()) mismatch();
    Shape output = a;
    for (std::size_t i = 0; i < a.dims.size(); ++i) {
      if (a.dims[i] != b.dims[i] && a.dims[i] != 1 && b.dims[i] != 1) mismatch();
      output.dims[i] = std::max(a.dims[i], b.dims[i]);
    }
    return output;
  }
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape>) const override {
    if (elements_ == 0) return {};
    return {{"weight", elements_}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size read =
        stored_bytes(site.inputs[0], how.precision) + stored_bytes(second(site.inputs), how.precision);
    run(site, how, Phase::forward, kKernels[static_cast<std::size_t>(operation_)], read, kernels);
  }

  // The gradient of each operand, summed along the dimensions, and for a trained one the samples, where it is
  // the same: of a product the other one times dy, of a quotient a / b: dy / b and -dy a / b^2.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    const Size y = stored_bytes(site.output, how.precision);
    if (site.input_gradient) {
      if (keeps())
        run(site, how, Phase::backward_data, "mul", y + stored_bytes(second(site.inputs), how.precision),
            kernels);
      sum_to(site, how, Phase::backward_data, site.inputs[0], kernels);
    }
    const Phase phase = trained_ ? Phase::backward_weights : Phase::backward_data;
    if (trained_ ? !site.weight_gradient : !site.input_gradient) return;
    if (operation_ == Operation::subtract) run(site, how, phase, "neg", y, kernels);
    if (keeps()) run(site, how, phase, "mul", y + stored_bytes(site.inputs[0], how.precision), kernels);
    if (operation_ == Operation::divide) run(site, how, phase, "div", y * 2, kernels);
    sum_to(site, how, phase, second(site.inputs), kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = keeps() && (site.input_gradient || site.weight_gradient)};
  }

 private:
  [[nodiscard]] bool keeps() const { return operation_ >= Operation::multiply; }
  [[nodiscard]] const Shape& second(std::span<const Shape> inputs) const {
    return trained_ ? *trained_ : inputs[1];
  }
  static void run(const LayerContext& site, const LoweringContext& how, Phase phase, std::string_view op,
                  Size read, std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, op, site.output, 1, read,
                                    stored_bytes(site.output, how.precision)));
  }
  static void sum_to(const LayerContext& site, const LoweringContext& how, Phase phase, const Shape& operand,
                     std::vector<Kernel>& kernels) {
    if (operand == site.output) return;
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::reduction, phase, "sum", site.output, 1, y,
                                    stored_bytes(operand, how.precision)));
    kernels.back().scratch_bytes = y;
  }

  Operation operation_;
  std::optional<Shape> trained_;  // one row
  std::int64_t elements_ = 0;     // of the trained tensor, of which that one may be made; 0: another layer's
};

}  // namespace

std::unique_ptr<Layer> make_pairwise(SpecMap& keys) { return std::make_unique<Pairwise>(keys); }

}  // namespace tbdsim
