// conv_transpose2d: every pixel becomes a square of kernel x kernel pixels, stride pixels from the next
// one's; where they overlap they are added up: out[n,k,p*s+r-pad,q*s+t-pad] += sum_c in[n,c,p,q] *
// weight[c,k,r,t].
//
// With stride = kernel squares lie side by side: the same multiply-adds and bytes as a 1x1 convolution to
// filters x kernel^2 channels, as which its kernels are timed. Else its forward pass is the data pass of the
// convolution from its output to its input. Images are copied into no other layout around it, as they are
// around conv2d's.
#include "graphs/layers/biased_convolution.h"
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostFilters = 10'000'000;
constexpr std::int64_t kLargestKernel = 64;

class ConvTranspose2d : public BiasedConvolution {
 public:
  explicit ConvTranspose2d(SpecMap& keys)
      : BiasedConvolution("conv_transpose", keys.at("filters").count(1, kMostFilters), has_bias(keys, true)),
        kernel_(keys.at("kernel").count(1, kLargestKernel)),
        stride_(kernel_) {
    if (const auto stride = keys.find("stride")) stride_ = stride->count(1, kernel_);
    if (const auto padding = keys.find("padding")) pad_ = padding->count(0, kernel_ - 1);
    if (const auto more = keys.find("output_padding")) output_pad_ = more->count(0, stride_ - 1);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    return {in.rows, {filters(), pixels(in.dims[1], "height"), pixels(in.dims[2], "width")}};
  }

 private:
  // Pixels of the output along one side.
  [[nodiscard]] std::int64_t pixels(std::int64_t input, std::string_view axis) const {
    const std::int64_t all = checked_multiply(input - 1, stride_) + kernel_ + output_pad_ - 2 * pad_;
    if (all >= 1) return all;
    throw ShapeMismatch("an input " + std::string(axis) + " of " + std::to_string(input) +
                        " leaves no output with padding " + std::to_string(pad_) +
                        "; expected a larger input or less padding");
  }
  [[nodiscard]] bool side_by_side() const { return stride_ == kernel_ && pad_ == 0 && output_pad_ == 0; }
  [[nodiscard]] std::int64_t squares() const { return checked_multiply(filters(), kernel_ * kernel_); }
  [[nodiscard]] std::int64_t weights(const Shape& in) const override {
    return checked_multiply(in.dims[0], squares());
  }

  [[nodiscard]] Size multiply_adds(const LayerContext& site) const override {
    return elements(site.inputs[0]) * squares();
  }

  [[nodiscard]] ConvShape as_images(const LayerContext& site) const override {
    const Shape& in = site.inputs[0];
    if (side_by_side()) {
      return {.images = in.rows,
              .channels = in.dims[0],
              .height = in.dims[1],
              .width = in.dims[2],
              .filters = squares(),
              .out_height = in.dims[1],
              .out_width = in.dims[2],
              .kernel_height = 1,
              .kernel_width = 1};
    }
    return {.images = in.rows,
            .channels = filters(),
            .height = site.output.dims[1],
            .width = site.output.dims[2],
            .filters = in.dims[0],
            .out_height = in.dims[1],
            .out_width = in.dims[2],
            .kernel_height = kernel_,
            .kernel_width = kernel_,
            .stride_height = stride_,
            .stride_width = stride_,
            .pad_height = pad_,
            .pad_width = pad_,
            .transposed = true};
  }

  std::int64_t kernel_;
  std::int64_t stride_;
  std::int64_t pad_ = 0;         // pixels cut off on each side
  std::int64_t output_pad_ = 0;  // pixels added after the last
};

}  // namespace

std::unique_ptr<Layer> make_conv_transpose2d(SpecMap& keys) {
  return std::make_unique<ConvTranspose2d>(keys);
}

}  // namespace tbdsim
