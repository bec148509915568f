// batch_norm: y = gamma (x - mean) / sqrt(var + eps) + beta, mean and variance over rows and pixels per
// channel.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

// Operations on each element. Forward: sum (1), squared deviation (2), normalise (1), scale and shift (1
// each). Backward: sum of dy (1), normalised x (2), sum of dy * x (2), dx = gamma / std (dy - mean - x *
// mean) (4).
constexpr std::int64_t kForwardFlops = 6;
constexpr std::int64_t kBackwardFlops = 9;

class BatchNorm : public Layer {
 public:
  explicit BatchNorm(SpecMap& keys) {
    if (const auto scale = keys.find("scale")) scale_ = scale->flag();
    if (const auto shift = keys.find("shift")) shift_ = shift->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return image_input(inputs);
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t channels = image_input(inputs).dims[0];
    std::vector<ParameterTensor> tensors;
    if (scale_) tensors.push_back({"gamma", channels});
    if (shift_) tensors.push_back({"beta", channels});
    tensors.push_back({"moving_statistics", checked_multiply(2, channels), false});
    return tensors;
  }

  // Statistics need all of x before the first y: x is read twice.
  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    add(site, Phase::forward, kForwardFlops, x * 2, x, kernels);
  }

  // One kernel for all gradients: x and dy are read for the two sums and again for dx.
  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    if (site.input_gradient) {
      add(site, Phase::backward_data, kBackwardFlops, x * 4, x, kernels);
    } else {
      add(site, Phase::backward_weights, kBackwardFlops, x * 2, {}, kernels);
    }
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite&, const Expansion&) const override {
    return {.inputs = true};
  }

 private:
  static void add(const LayerSite& site, Phase phase, std::int64_t flops, Size read, Size written,
                  std::vector<Kernel>& kernels) {
    kernels.push_back(
        memory_kernel(KernelKind::batch_norm, phase, "batch_norm", site.output, flops, read, written));
    kernels.back().shape = image_shape(site.output);
  }

  bool scale_ = true;
  bool shift_ = true;
};

}  // namespace

std::unique_ptr<Layer> make_batch_norm(SpecMap& keys) { return std::make_unique<BatchNorm>(keys); }

}  // namespace tbdsim
