// conv3d: a convolution of volumes {channels, depth, height, width} by cubes of kernel^3 pixels, with as much
// padding as keeps the volume at stride 1. conv_transpose3d: every pixel becomes a cube of kernel^3 pixels
// side by side.
//
// No table of measured calls has volumes. Their kernels are timed as convolutions of images of as many
// multiply-adds: each slice of the output is an image, whose channels are those of the `kernel` slices that
// it reads; a transposed one is a 1x1 convolution to filters x kernel^3 channels. Bytes are those of the
// volumes.
#include "graphs/layers/biased_convolution.h"
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

class VolumeConvolution : public BiasedConvolution {
 public:
  VolumeConvolution(SpecMap& keys, bool transposed)
      : BiasedConvolution(transposed ? "conv_transpose3d" : "conv3d",
                          keys.at("filters").count(1, kMostFilters), has_bias(keys, false)),
        kernel_(keys.at("kernel").count(1, kLargestKernel)),
        transposed_(transposed) {
    if (const auto stride = keys.find("stride")) stride_ = stride->count(1, kernel_);
    if (transposed) stride_ = kernel_;
    if (!transposed && kernel_ % 2 == 0)
      keys.at("kernel").fail("is even; expected an odd number, so that padding is the same on both sides");
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = volume_input(inputs);
    Shape out{in.rows, {filters()}};
    for (std::size_t axis = 1; axis < in.dims.size(); ++axis) {
      const std::int64_t pixels = in.dims[axis];
      out.dims.push_back(transposed_ ? checked_multiply(pixels, kernel_) : (pixels - 1) / stride_ + 1);
    }
    return out;
  }

 private:
  [[nodiscard]] std::int64_t cube() const { return kernel_ * kernel_ * kernel_; }
  [[nodiscard]] std::int64_t weights(const Shape& in) const override {
    return checked_multiply(checked_multiply(in.dims[0], cube()), filters());
  }

  // A transposed one multiplies each pixel of its input by every weight of its channel, others each pixel of
  // their output.
  [[nodiscard]] Size multiply_adds(const LayerContext& site) const override {
    const Shape& in = site.inputs[0];
    return transposed_ ? elements(in) * checked_multiply(filters(), cube())
                       : elements(site.output) * checked_multiply(in.dims[0], cube());
  }

  [[nodiscard]] ConvShape as_images(const LayerContext& site) const override {
    const Shape& in = site.inputs[0];
    if (transposed_) {
      return {.images = in.rows * in.dims[1],
              .channels = in.dims[0],
              .height = in.dims[2],
              .width = in.dims[3],
              .filters = checked_multiply(filters(), cube()),
              .out_height = in.dims[2],
              .out_width = in.dims[3],
              .kernel_height = 1,
              .kernel_width = 1};
    }
    return {.images = in.rows * site.output.dims[1],
            .channels = checked_multiply(in.dims[0], kernel_),
            .height = in.dims[2],
            .width = in.dims[3],
            .filters = filters(),
            .out_height = site.output.dims[2],
            .out_width = site.output.dims[3],
            .kernel_height = kernel_,
            .kernel_width = kernel_,
            .stride_height = stride_,
            .stride_width = stride_,
            .pad_height = kernel_ / 2,
            .pad_width = kernel_ / 2};
  }

  std::int64_t kernel_;
  bool transposed_;
  std::int64_t stride_ = 1;
};

}  // namespace

std::unique_ptr<Layer> make_conv3d(SpecMap& keys) { return std::make_unique<VolumeConvolution>(keys, false); }
std::unique_ptr<Layer> make_conv_transpose3d(SpecMap& keys) {
  return std::make_unique<VolumeConvolution>(keys, true);
}

}  // namespace tbdsim
