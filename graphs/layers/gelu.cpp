// gelu: y = x * Phi(x) with the normal distribution Phi and its density phi (Hendrycks and Gimpel, arXiv
// 1606.08415); dx = dy * (Phi(x) + x * phi(x)).
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

// Operations on each element: x / sqrt 2, erf, + 1, / 2, times x. Backward the first four again, x^2, / -2,
// exponential, / sqrt(2 pi), times x, sum, times dy.
constexpr std::int64_t kForwardFlops = 5;
constexpr std::int64_t kBackwardFlops = 11;

// The composite form of programs written before frameworks had a GELU: x * 0.5 * (1 + erf(x / 1.41421)),
// NVIDIA DeepLearningExamples BERT modeling.py f_gelu. Backward: gradients of both factors; of erf, 2 /
// sqrt(pi) * exp(-x^2) * dy; the sum over the two uses of x.
constexpr Term kForward[] = {{"div", 1, 1}, {"erf", 1, 1}, {"add", 1, 1}, {"mul", 1, 1}, {"mul", 2, 1}};
constexpr Term kBackward[] = {{"mul", 2, 1, 2}, {"pow", 1, 1}, {"neg", 1, 1}, {"exp", 1, 1}, {"mul", 1, 1},
                              {"mul", 2, 1},    {"div", 1, 1}, {"mul", 1, 1}, {"add", 2, 1}};
// Kept: the argument of erf and both factors of the last product; where products keep both of their factors,
// x.
constexpr std::int64_t kTermsKept = 3;

// The approximation by a hyperbolic tangent as a program writes it: 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x +
// 0.044715 * pow(x, 3)))), transformers activations.py NewGELUActivation. Kept: x (for its cube and the
// half), the tangent, 1 + tangent, half of x.
constexpr Term kTanhForward[] = {{"pow", 1, 1},  {"mul", 1, 1, 3}, {"add", 2, 1},
                                 {"tanh", 1, 1}, {"add", 1, 1},    {"mul", 2, 1}};
constexpr Term kTanhBackward[] = {{"mul", 2, 1, 2}, {"tanh", 2, 1}, {"mul", 1, 1, 3}, {"pow", 1, 1},
                                  {"mul", 1, 1},    {"mul", 2, 1},  {"add", 2, 1, 2}};

class Gelu : public Layer {
 public:
  explicit Gelu(SpecMap& keys) {
    constexpr std::array<std::string_view, 2> kApproximations = {"none", "tanh"};
    if (const auto how = keys.find("approximate")) tanh_ = how->one_of(kApproximations) == 1;
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      const std::span<const Term> terms = tanh_ ? std::span<const Term>(kTanhForward) : kForward;
      append_terms(terms, position_sizes(site.output, 0), Phase::forward, how.precision, kernels);
      return;
    }
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, "gelu", site.output, kForwardFlops, x, x));
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (composite(how)) {
      const std::span<const Term> terms = tanh_ ? std::span<const Term>(kTanhBackward) : kBackward;
      append_terms(terms, position_sizes(site.output, 2), Phase::backward_data, how.precision, kernels);
      return;
    }
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "gelu", site.output,
                                    kBackwardFlops, x * 2, x));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (!site.input_gradient || !composite(how)) return {.inputs = site.input_gradient};
    const bool keeps_x = tanh_ || how.lowering.product_keeps == SavedMatmulInputs::both;
    return {.inputs = keeps_x,
            .extra_bytes = stored_bytes(site.output, how.precision) * kTermsKept,
            .extra_pieces = kTermsKept};
  }

 private:
  [[nodiscard]] bool composite(const LoweringContext& how) const {
    return (tanh_ ? how.lowering.gelu_new : how.lowering.gelu) == Composition::composite;
  }

  bool tanh_ = false;  // by the approximation
};

}  // namespace

std::unique_ptr<Layer> make_gelu(SpecMap& keys) { return std::make_unique<Gelu>(keys); }

}  // namespace tbdsim
