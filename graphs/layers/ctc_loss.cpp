// ctc_loss: connectionist temporal classification (Graves et al., ICML 2006) of {steps, classes} scores
// against a shorter row of `labels` labels: -log of the probability of all alignments. Forward the recursion
// alpha over the steps, backward the recursion beta and the gradient.
#include "graphs/ctc_recursion.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostLabels = 1'000'000;

class CtcLoss : public Layer {
 public:
  explicit CtcLoss(SpecMap& keys) : labels_(keys.at("labels").count(1, kMostLabels)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.size() != 2)
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected steps x classes");
    return inputs[0];
  }

  // The labels, or their lengths, are needed on the host, which waits for them.
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(device_to_host(site.output.rows * labels_, kIndexBytes));
    kernels.push_back(
        memory_kernel(KernelKind::softmax, Phase::forward, "softmax", site.output, kSoftmaxFlops, x, x));
    kernels.back().shape = position_matrix(site.output);
    kernels.push_back(recursion(Phase::forward, "ctc_alpha", site, states_bytes(site), states_bytes(site)));
  }

  // Reads alpha and the probabilities, writes the gradient of every score.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(recursion(Phase::backward_data, "ctc_beta", site, states_bytes(site) + x, x));
  }

  [[nodiscard]] bool is_loss() const override { return true; }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.output = site.input_gradient, .extra_bytes = states_bytes(site)};
  }

 private:
  [[nodiscard]] std::int64_t states() const { return 2 * labels_ + 1; }

  [[nodiscard]] Size states_bytes(const LayerContext& site) const {
    return site.output.rows * checked_multiply(site.output.dims[0], states() * kFp32Bytes);
  }

  [[nodiscard]] Kernel recursion(Phase phase, std::string_view op, const LayerContext& site, Size read,
                                 Size written) const {
    return ctc_kernel({.phase = phase,
                       .op = op,
                       .positions = site.output.rows * site.output.dims[0],
                       .states = states(),
                       .read = read,
                       .written = written});
  }

  std::int64_t labels_;
};

}  // namespace

std::unique_ptr<Layer> make_ctc_loss(SpecMap& keys) { return std::make_unique<CtcLoss>(keys); }

}  // namespace tbdsim
