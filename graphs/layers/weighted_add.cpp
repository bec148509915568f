// weighted_add: y = sum_i w_i x_i of maps of one shape, with a trained number w_i for each: relu(w_i) over
// their sum and a small constant ("fast normalised fusion" of EfficientDet, Tan et al., CVPR 2020).
//
// Operators are those of google/automl's EfficientDet in TensorFlow: for every input a product with its
// weight and a division by the sum s, then a sum of all; weights are numbers, whose operators take a launch
// each. PyTorch's (NVIDIA/DeepLearningExamples@729963dd, PyTorch/Detection/Efficientdet/effdet/model.py,
// FpnCombine) has the same and copies all inputs side by side before the sum, which is left out.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostSpare = 1'000;

class WeightedAdd : public Layer {
 public:
  explicit WeightedAdd(SpecMap& keys) {
    if (const auto divides = keys.find("divides")) divides_ = divides->flag();
    if (const auto spare = keys.find("spare")) spare_ = spare->count(0, kMostSpare);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    if (inputs.size() < 2)
      throw ShapeMismatch("has " + std::to_string(inputs.size()) +
                          " inputs; expected two or more, 'from: [a, b]'");
    require_same_rows(inputs);
    for (const Shape& shape : inputs) {
      if (shape != inputs[0])
        throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(shape) +
                            "; expected one shape");
    }
    return inputs[0];
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    return {{"weights", static_cast<std::int64_t>(inputs.size()) + spare_}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const auto inputs = static_cast<std::int64_t>(site.inputs.size());
    const Size x = stored_bytes(site.output, how.precision);
    numbers(site, Phase::forward, kernels);
    for (std::int64_t i = 0; i < inputs; ++i) {
      over_map("mul", site, Phase::forward, 1, x, x, kernels);
      if (divides_) over_map("div", site, Phase::forward, 1, x, x, kernels);
    }
    over_map("add", site, Phase::forward, inputs - 1, x * inputs, x, kernels);
  }

  // For each input, with q_i = w_i x_i: dq_i = dy / s, dx_i = w_i dq_i, the gradient of w_i is the sum of
  // dq_i x_i over everything, that of s the sum of -dy (q_i / s) / s, by four operators and a sum (PyTorch:
  // FunctionsManual.cpp, div_tensor_other_grad; TensorFlow: math_grad.py, _RealDivGrad).
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    for (std::size_t i = 0; i < site.inputs.size(); ++i) {
      if (divides_ && site.input_gradient) over_map("div", site, Phase::backward_data, 1, x, x, kernels);
      if (site.input_gradient) over_map("mul", site, Phase::backward_data, 1, x, x, kernels);
      if (!site.weight_gradient) continue;
      if (divides_) {
        for (const std::string_view op : {"neg", "div", "div"})
          over_map(op, site, Phase::backward_weights, 1, x, x, kernels);
        summed_product(site, x, kernels);
      }
      summed_product(site, x, kernels);
    }
    if (site.weight_gradient) numbers(site, Phase::backward_weights, kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.weight_gradient};
  }

 private:
  static void over_map(std::string_view op, const LayerContext& site, Phase phase, std::int64_t flops,
                       Size read, Size written, std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, op, site.output, flops, read, written));
  }
  // The product of two maps, and its sum over everything.
  static void summed_product(const LayerContext& site, const Size& x, std::vector<Kernel>& kernels) {
    over_map("mul", site, Phase::backward_weights, 1, x * 2, x, kernels);
    kernels.back().scratch_bytes = x;
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "sum", site.output, 1, x,
                                    fixed_size(kFp32Bytes)));
  }
  // Operators of the weights themselves: a relu of each, their sum, a constant.
  static void numbers(const LayerContext& site, Phase phase, std::vector<Kernel>& kernels) {
    const Size word = fixed_size(kFp32Bytes);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, phase, "fusion_weight", {fixed_size(1), {}}, 1, word, word));
    kernels.back().repeat = static_cast<std::int64_t>(site.inputs.size()) + 2;
  }

  bool divides_ = true;
  std::int64_t spare_ = 0;  // weights of the program's table that no input has
};

}  // namespace

std::unique_ptr<Layer> make_weighted_add(SpecMap& keys) { return std::make_unique<WeightedAdd>(keys); }

}  // namespace tbdsim
