// softmax_loss: p = softmax(x), loss = -log p[label] of each row or position; dx = p - one_hot(label). With
// `targets: dense` a share of every class takes the label's place, as of a search's visits.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class SoftmaxLoss : public Layer {
 public:
  explicit SoftmaxLoss(SpecMap& keys) {
    const auto targets = keys.find("targets");
    if (targets && targets->one_of({"labels", "dense"}) == 1) ++reads_;
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return class_scores(inputs);
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(
        softmax_kernel(Phase::forward, "softmax_loss", site.output, how.precision, kSoftmaxFlops, reads_));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    kernels.push_back(
        softmax_kernel(Phase::backward_data, "softmax_loss", site.output, how.precision, 1, reads_));
    kernels.back().timed_as = KernelKind::elementwise;  // p - one_hot(label)
  }

  [[nodiscard]] bool is_loss() const override { return true; }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.output = site.input_gradient};
  }

 private:
  std::int64_t reads_ = 1;  // tensors of the scores' size
};

}  // namespace

std::unique_ptr<Layer> make_softmax_loss(SpecMap& keys) { return std::make_unique<SoftmaxLoss>(keys); }

}  // namespace tbdsim
