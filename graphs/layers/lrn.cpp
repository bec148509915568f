// lrn: local response normalisation across channels (Krizhevsky et al., NIPS 2012): y_c = x_c / s_c^beta with
// s_c = k + alpha * (sum of x^2 over a window of channels around channel c); k, alpha and beta are constants.
//
// Its kernels are element-wise, not those of a batch norm: no sum over rows and pixels holds up the first
// output, so x is read once and neighbouring channels come from the cache.
//
// The composite form has two kernels forward, for s and y = x * s^-beta, and two backward, for dy * s^-beta
// and the term -2 * alpha * beta * x * (sum over the window of x * dy * s^(-beta - 1)), with a power for each
// channel of the window, so that they are compute-bound. Source: MXNet 1.2, src/operator/nn/lrn-inl.h
// (mshadow's chpool; the package mxnet-cu90 1.2.0 holds these kernels and calls no cuDNN for them).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostChannels = 10'000'000;
// Flops of CUDA's powf as nvcc 13 compiles it: 19 multiply-adds, 23 additions and products, a reciprocal.
constexpr std::int64_t kPowerFlops = 2 * 19 + 23 + 1;

class LocalResponseNorm : public Layer {
 public:
  explicit LocalResponseNorm(SpecMap& keys) : window_(keys.at("window").count(1, kMostChannels)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return image_input(inputs);
  }

  // s: square (1), sum (window - 1), scale and shift (2); then power and division (2).
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    const auto add = [&](std::string_view op, std::int64_t flops, const Size& read) {
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::forward, op, site.output, flops, read, x));
    };
    if (!composite(how)) return add("lrn", window_ + 4, x);
    add("lrn_norm", 2 * window_ + 1, x);
    add("lrn_scale", kPowerFlops + 1, x * 2);
  }

  // dx = dy / s^beta - 2 * alpha * beta * x * (sum over the window of dy * y / s): s again (window + 2), dy *
  // y / s (2), its sum (window - 1), power, division, two products and the difference (5). Reads x, y and dy.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    const auto add = [&](std::string_view op, std::int64_t flops, const Size& read) {
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::backward_data, op, site.output, flops, read, x));
    };
    if (!composite(how)) return add("lrn", 2 * window_ + 8, x * 3);
    add("lrn_scale", kPowerFlops + 1, x * 2);
    add("lrn_window", window_ * (kPowerFlops + 3) + 3, x * 4);
  }

  // Composite: s is kept in addition to x.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (!site.input_gradient) return {};
    if (composite(how)) return {.inputs = true, .extra_bytes = stored_bytes(site.output, how.precision)};
    return {.inputs = true, .output = true};
  }

 private:
  [[nodiscard]] static bool composite(const LoweringContext& how) {
    return how.lowering.lrn == Composition::composite;
  }

  std::int64_t window_;
};

}  // namespace

std::unique_ptr<Layer> make_lrn(SpecMap& keys) { return std::make_unique<LocalResponseNorm>(keys); }

}  // namespace tbdsim
