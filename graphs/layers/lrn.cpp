// lrn: local response normalisation across channels (Krizhevsky et al., NIPS 2012): y_c = x_c / s_c^beta with
// s_c = k + alpha * (sum of x^2 over a window of channels around c).
//
// Its kernels are element-wise, not those of a batch norm: no sum over rows and pixels holds up the first
// output, so x is read once and neighbouring channels come from the cache.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostChannels = 10'000'000;

class LocalResponseNorm : public Layer {
 public:
  explicit LocalResponseNorm(SpecMap& keys) : window_(keys.at("window").count(1, kMostChannels)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return image_input(inputs);
  }

  // s: square (1), sum (window - 1), scale and shift (2); then power and division (2).
  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, "lrn", site.output, window_ + 4, x, x));
  }

  // dx = dy / s^beta - 2 alpha beta x (sum over the window of dy y / s): s again (window + 2), dy y / s (2),
  // its sum (window - 1), power, division, two products and the difference (5). Reads x, y and dy.
  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "lrn", site.output,
                                    2 * window_ + 8, x * 3, x));
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    return {.inputs = site.input_gradient, .output = site.input_gradient};
  }

 private:
  std::int64_t window_;
};

}  // namespace

std::unique_ptr<Layer> make_lrn(SpecMap& keys) { return std::make_unique<LocalResponseNorm>(keys); }

}  // namespace tbdsim
