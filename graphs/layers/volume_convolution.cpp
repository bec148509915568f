// conv3d: a convolution of volumes {channels, depth, height, width} by cubes of kernel^3 pixels, with as much
// padding as keeps the volume at stride 1. conv_transpose3d: every pixel becomes a cube of kernel^3 pixels
// side by side.
//
// No table of measured calls has volumes. Their kernels are timed as convolutions of images of as many
// multiply-adds: each slice of the output is an image, whose channels are those of the `kernel` slices that
// it reads; a transposed one is a 1x1 convolution to filters x kernel^3 channels. Bytes are those of the
// volumes.
#include "graphs/layers/bias.h"
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostFilters = 10'000'000;
constexpr std::int64_t kLargestKernel = 31;

const Shape& volume_input(std::span<const Shape> inputs) {
  require_inputs(inputs, 1);
  if (inputs[0].dims.size() != 4)
    throw ShapeMismatch("input has shape " + to_text(inputs[0]) +
                        "; expected channels x depth x height x width");
  return inputs[0];
}

class VolumeConvolution : public Layer {
 public:
  VolumeConvolution(SpecMap& keys, bool transposed)
      : filters_(keys.at("filters").count(1, kMostFilters)),
        kernel_(keys.at("kernel").count(1, kLargestKernel)),
        transposed_(transposed) {
    if (const auto stride = keys.find("stride")) stride_ = stride->count(1, kernel_);
    if (transposed) stride_ = kernel_;
    if (const auto bias = keys.find("bias")) bias_ = bias->flag();
    if (!transposed && kernel_ % 2 == 0)
      keys.at("kernel").fail("is even; expected an odd number, so that padding is the same on both sides");
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = volume_input(inputs);
    Shape out{in.rows, {filters_}};
    for (std::size_t axis = 1; axis < in.dims.size(); ++axis) {
      const std::int64_t pixels = in.dims[axis];
      out.dims.push_back(transposed_ ? checked_multiply(pixels, kernel_) : (pixels - 1) / stride_ + 1);
    }
    return out;
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    std::vector<ParameterTensor> tensors{{"weight", weights(volume_input(inputs)), true, true}};
    if (bias_) tensors.push_back({"bias", filters_, true, true});
    return tensors;
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(product(site, how, Phase::forward));
    if (bias_) kernels.push_back(bias_add(site, how.precision, channel_matrix(site.output)));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.weight_gradient) {
      if (bias_) kernels.push_back(bias_gradient(site, how.precision, filters_, channel_matrix(site.output)));
      kernels.push_back(product(site, how, Phase::backward_weights));
    }
    if (site.input_gradient) kernels.push_back(product(site, how, Phase::backward_data));
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.weight_gradient};
  }

 private:
  [[nodiscard]] std::int64_t cube() const { return kernel_ * kernel_ * kernel_; }
  [[nodiscard]] std::int64_t weights(const Shape& in) const {
    return checked_multiply(checked_multiply(in.dims[0], cube()), filters_);
  }

  [[nodiscard]] ConvShape as_images(const LayerContext& site) const {
    const Shape& in = site.inputs[0];
    if (transposed_) {
      return {.images = in.rows * in.dims[1],
              .channels = in.dims[0],
              .height = in.dims[2],
              .width = in.dims[3],
              .filters = checked_multiply(filters_, cube()),
              .out_height = in.dims[2],
              .out_width = in.dims[3],
              .kernel_height = 1,
              .kernel_width = 1};
    }
    return {.images = in.rows * site.output.dims[1],
            .channels = checked_multiply(in.dims[0], kernel_),
            .height = in.dims[2],
            .width = in.dims[3],
            .filters = filters_,
            .out_height = site.output.dims[2],
            .out_width = site.output.dims[3],
            .kernel_height = kernel_,
            .kernel_width = kernel_,
            .stride_height = stride_,
            .stride_width = stride_,
            .pad_height = kernel_ / 2,
            .pad_width = kernel_ / 2};
  }

  [[nodiscard]] Kernel product(const LayerContext& site, const LoweringContext& how, Phase phase) const {
    const Shape& in = site.inputs[0];
    const Size x = stored_bytes(in, how.precision);
    const Size y = stored_bytes(site.output, how.precision);
    const Size w = fixed_size(checked_multiply(weights(in), how.precision.storage_bytes));
    Kernel kernel;
    kernel.kind = KernelKind::convolution;
    kernel.op = transposed_ ? "conv_transpose3d" : "conv3d";
    kernel.phase = phase;
    kernel.math = how.precision.math;
    // A transposed one multiplies each pixel of its input by every weight of its channel, others each pixel
    // of their output.
    kernel.macs = transposed_ ? elements(in) * checked_multiply(filters_, cube())
                              : elements(site.output) * checked_multiply(in.dims[0], cube());
    kernel.flops = kernel.macs * 2;
    kernel.read_bytes = phase == Phase::forward ? x + w : phase == Phase::backward_data ? y + w : x + y;
    kernel.written_bytes = phase == Phase::forward ? y : phase == Phase::backward_data ? x : w;
    kernel.shape = as_images(site);
    return kernel;
  }

  std::int64_t filters_;
  std::int64_t kernel_;
  bool transposed_;
  std::int64_t stride_ = 1;
  bool bias_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_conv3d(SpecMap& keys) { return std::make_unique<VolumeConvolution>(keys, false); }
std::unique_ptr<Layer> make_conv_transpose3d(SpecMap& keys) {
  return std::make_unique<VolumeConvolution>(keys, true);
}

}  // namespace tbdsim
