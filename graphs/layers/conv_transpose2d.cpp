// conv_transpose2d: every pixel becomes a square of as many pixels as the kernel has, out[n,k,p*s+r,q*s+t] =
// bias[k] + sum_c in[n,c,p,q] * weight[c,k,r,t] with stride s = kernel: the squares do not overlap. The same
// multiply-adds and bytes as a 1x1 convolution to filters x kernel^2 channels, as which its kernels are
// timed. Images are copied into no other layout around it, as they are around conv2d's.
#include "graphs/layers/bias.h"
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostFilters = 10'000'000;
constexpr std::int64_t kLargestKernel = 64;

class ConvTranspose2d : public Layer {
 public:
  explicit ConvTranspose2d(SpecMap& keys)
      : filters_(keys.at("filters").count(1, kMostFilters)),
        kernel_(keys.at("kernel").count(1, kLargestKernel)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    return {in.rows,
            {filters_, checked_multiply(in.dims[1], kernel_), checked_multiply(in.dims[2], kernel_)}};
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    return {{"weight", weights(image_input(inputs)), true, true}, {"bias", filters_, true, true}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(product(site, how, Phase::forward));
    kernels.push_back(bias_add(site, how.precision, channel_matrix(site.output)));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.weight_gradient) {
      kernels.push_back(bias_gradient(site, how.precision, filters_, channel_matrix(site.output)));
      kernels.push_back(product(site, how, Phase::backward_weights));
    }
    if (site.input_gradient) kernels.push_back(product(site, how, Phase::backward_data));
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.weight_gradient};
  }

 private:
  [[nodiscard]] std::int64_t squares() const { return checked_multiply(filters_, kernel_ * kernel_); }
  [[nodiscard]] std::int64_t weights(const Shape& in) const {
    return checked_multiply(in.dims[0], squares());
  }

  [[nodiscard]] Kernel product(const LayerContext& site, const LoweringContext& how, Phase phase) const {
    const Shape& in = site.inputs[0];
    const Size x = stored_bytes(in, how.precision);
    const Size y = stored_bytes(site.output, how.precision);
    const Size w = fixed_size(checked_multiply(weights(in), how.precision.storage_bytes));
    Kernel kernel;
    kernel.kind = KernelKind::convolution;
    kernel.op = "conv_transpose";
    kernel.phase = phase;
    kernel.math = how.precision.math;
    kernel.macs = elements(in) * squares();
    kernel.flops = kernel.macs * 2;
    kernel.read_bytes = phase == Phase::forward ? x + w : phase == Phase::backward_data ? y + w : x + y;
    kernel.written_bytes = phase == Phase::forward ? y : phase == Phase::backward_data ? x : w;
    kernel.shape = ConvShape{.images = in.rows,
                             .channels = in.dims[0],
                             .height = in.dims[1],
                             .width = in.dims[2],
                             .filters = squares(),
                             .out_height = in.dims[1],
                             .out_width = in.dims[2],
                             .kernel_height = 1,
                             .kernel_width = 1};
    return kernel;
  }

  std::int64_t filters_;
  std::int64_t kernel_;  // the stride, too
};

}  // namespace

std::unique_ptr<Layer> make_conv_transpose2d(SpecMap& keys) {
  return std::make_unique<ConvTranspose2d>(keys);
}

}  // namespace tbdsim
