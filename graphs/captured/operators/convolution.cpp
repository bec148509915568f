// aten.convolution and its backward pass: (input, weight, bias, stride, padding, dilation, transposed,
// output_padding, groups), with a mask of the gradients that are wanted.
//
//   1-D   rows of height 1, as PyTorch calls cuDNN
//   3-D   a 2-D convolution of each output's depth: images = samples x output depth, channels x kernel depth;
//         multiply-adds are exact, the bytes of a row that several depths read count as tensors are
//   transposed   the data pass of the convolution from its output to its input; where windows do not overlap
//         the product of every pixel with the weights
#include <algorithm>
#include <utility>

#include "graphs/captured/operators/operators.h"
#include "graphs/depthwise.h"
#include "graphs/image_product.h"

namespace tbdsim {
namespace {

struct Arguments {
  const CapturedTensor& x;
  const CapturedTensor& w;
  const CapturedTensor& y;
  std::vector<std::int64_t> stride, padding, dilation;
  bool transposed = false;
  std::int64_t groups = 1;
};

// The number that a list gives a spatial dimension, counted from the last; lists of one number give it to
// all.
std::int64_t from_last(const std::vector<std::int64_t>& list, std::size_t dimension, std::int64_t unless) {
  if (list.empty()) return unless;
  return dimension < list.size() ? list[list.size() - 1 - dimension] : list.front();
}

// A size of a tensor counted from the last dimension; 1 beyond the spatial ones.
std::int64_t spatial(const OperatorSite& site, const CapturedTensor& tensor, std::size_t dimension) {
  const std::size_t rank = tensor.shape.size();
  return dimension + 2 < rank ? site.fixed(tensor.shape[rank - 1 - dimension]) : 1;
}

bool has_one_pixel(const OperatorSite& site, const CapturedTensor& tensor) {
  for (std::size_t d = 0; d + 2 < tensor.shape.size(); ++d) {
    if (spatial(site, tensor, d) != 1) return false;
  }
  return true;
}

class Convolution {
 public:
  Convolution(OperatorSite& site, const Arguments& arguments)
      : site_(site),
        a_(arguments),
        math_(math_of(arguments.w.dtype, site.how.precision.convolution_math())),
        channels_last_(is_channels_last(arguments.x) || is_channels_last(arguments.y)) {
    if (a_.x.shape.size() < 3 || a_.w.shape.size() != a_.x.shape.size() ||
        a_.y.shape.size() != a_.x.shape.size())
      site.fail(1, "a weight and an output of the input's rank, 3 or more");
  }

  // PyTorch's own depthwise kernels add the bias.
  [[nodiscard]] bool adds_bias() const { return shape().framework_kernel; }

  // The pass with the copies around it. Those of TF32 are before it, together, as it may run in fp32 without
  // any.
  void run(Phase phase) {
    const bool of_weights = phase == Phase::backward_weights;
    const auto copy_back = [&] {
      if (knows_image_products()) transpose(phase, of_weights ? a_.w : phase == Phase::forward ? a_.y : a_.x);
    };
    transpose(phase, phase == Phase::backward_data ? a_.y : a_.x);
    if (of_weights) transpose(phase, a_.y);
    if (!of_weights && knows_image_products()) transpose(phase, a_.w);
    if (math_ == MathType::tf32) copy_back();
    site_.emit(kernel(phase));
    if (math_ != MathType::tf32) copy_back();
  }

 private:
  // True for a library that multiplies NCHW images of one-tap convolutions as they are, and copies the
  // results of others back.
  [[nodiscard]] bool knows_image_products() const {
    return !channels_last_ && tbdsim::knows_image_products(math_, site_.how.lowering);
  }
  [[nodiscard]] bool by_image(Phase phase) const {
    return knows_image_products() && !a_.transposed && is_image_product(shape()) &&
           !copies_images(shape(), phase, math_);
  }

  // cuDNN convolves NCHW, or on tensor cores the lowering's layout; other images are copied to it, and
  // results written back by the convolution itself up to version 8.
  [[nodiscard]] bool transposes(Phase phase) const {
    if (a_.groups > 1 || by_image(phase)) return false;
    const Layout layout = channels_last_ ? Layout::nhwc : Layout::nchw;
    return layout != (math_ == MathType::fp32 ? Layout::nchw : site_.how.lowering.tensor_core_layout);
  }

  // A copy of an image, or of filters, to another layout.
  void transpose(Phase phase, const CapturedTensor& image) {
    if (!transposes(phase) || has_one_pixel(site_, image)) return;
    const Size bytes = bytes_of(image);
    Kernel copy = bytes_kernel(KernelKind::transpose, phase, "nhwc_nchw", image.elements, 0, bytes, bytes,
                               bytes_of(image.dtype));
    copy.tf32_only = math_ == MathType::tf32 && !channels_last_;
    site_.emit(std::move(copy));
  }

  [[nodiscard]] Kernel kernel(Phase phase) const {
    Kernel kernel;
    kernel.kind = KernelKind::convolution;
    kernel.phase = phase;
    kernel.op = a_.transposed ? "conv_transpose" : "conv";
    kernel.math = math_;
    kernel.macs = macs();
    kernel.flops = kernel.macs * 2;
    kernel.element_bytes = bytes_of(a_.w.dtype);
    const Size x = bytes_of(a_.x), y = bytes_of(a_.y), w = bytes_of(a_.w);
    kernel.read_bytes = phase == Phase::forward ? x + w : phase == Phase::backward_data ? y + w : x + y;
    kernel.written_bytes = phase == Phase::forward ? y : phase == Phase::backward_data ? x : w;
    kernel.tf32_only = math_ == MathType::tf32 && channels_last_;
    if (transposes(phase) && !has_one_pixel(site_, a_.x))
      kernel.scratch_bytes = x + y;  // the transposed copies
    kernel.shape = shape();
    if (phase != Phase::backward_weights && is_half(math_) && by_image(phase)) {
      kernel.kind = KernelKind::gemm;
      kernel.op = "conv_1x1";
      kernel.shape = image_products(shape(), phase);
    }
    return kernel;
  }

  [[nodiscard]] std::int64_t taps() const {
    std::int64_t taps = 1;
    for (std::size_t d = 0; d + 2 < a_.w.shape.size(); ++d)
      taps = checked_multiply(taps, spatial(site_, a_.w, d));
    return taps;
  }

  // One for each output pixel and weight of its filter; of transposed ones for each input pixel.
  [[nodiscard]] Size macs() const {
    const CapturedTensor& pixels = a_.transposed ? a_.x : a_.y;
    return pixels.elements * checked_multiply(site_.fixed(a_.w.shape[1]), taps());
  }

  // Sizes of the convolution from image `in` to image `out`.
  [[nodiscard]] ConvShape sizes(const CapturedTensor& in, const CapturedTensor& out) const {
    return {.images = in.shape[0] * spatial(site_, out, 2),
            .channels = in.shape[1].fixed,
            .height = spatial(site_, in, 1),
            .width = spatial(site_, in, 0),
            .filters = out.shape[1].fixed,
            .out_height = spatial(site_, out, 1),
            .out_width = spatial(site_, out, 0),
            .kernel_height = spatial(site_, a_.w, 1),
            .kernel_width = spatial(site_, a_.w, 0),
            .stride_height = of_height(a_.stride, 1),
            .stride_width = from_last(a_.stride, 0, 1),
            .pad_height = of_height(a_.padding, 0),
            .pad_width = from_last(a_.padding, 0, 0),
            .groups = a_.groups,
            .dilation_height = of_height(a_.dilation, 1),
            .dilation_width = from_last(a_.dilation, 0, 1)};
  }

  [[nodiscard]] ConvShape shape() const {
    ConvShape shape = a_.transposed ? transposed_shape() : sizes(a_.x, a_.y);
    const Size& channels = a_.x.shape[1];
    const Size& filters = a_.y.shape[1];
    if (channels.per_sample != 0 || filters.per_sample != 0) {
      // Weights of each sample's own: samples are groups of one image. They are charged as images.
      shape.images = {channels.fixed / std::max<std::int64_t>(1, channels.per_sample), 1};
      shape.channels = channels.per_sample;
      shape.filters = filters.per_sample;
    }
    shape.channels = checked_multiply(shape.channels, spatial(site_, a_.w, 2));
    shape.channels_last = channels_last_;
    if (a_.groups == 1) return shape;
    const Layout layout = channels_last_ ? Layout::nhwc : Layout::nchw;
    shape.framework_kernel = has_framework_kernel(shape, math_, layout, site_.how.lowering.depthwise);
    return shape;
  }

  [[nodiscard]] ConvShape transposed_shape() const {
    if (!side_by_side()) {
      ConvShape shape = sizes(a_.y, a_.x);
      shape.transposed = true;
      return shape;
    }
    const std::int64_t height = spatial(site_, a_.x, 1), width = spatial(site_, a_.x, 0);
    return {.images = a_.x.shape[0] * spatial(site_, a_.x, 2),
            .channels = a_.x.shape[1].fixed,
            .height = height,
            .width = width,
            .filters = checked_multiply(a_.y.shape[1].fixed, taps() / spatial(site_, a_.w, 2)),
            .out_height = height,
            .out_width = width,
            .kernel_height = 1,
            .kernel_width = 1,
            .groups = a_.groups};
  }

  // True if windows neither overlap nor leave pixels out: as many outputs as inputs x taps.
  [[nodiscard]] bool side_by_side() const {
    for (std::size_t d = 0; d + 2 < a_.w.shape.size(); ++d) {
      const std::int64_t kernel = spatial(site_, a_.w, d);
      const bool fits = spatial(site_, a_.y, d) == checked_multiply(spatial(site_, a_.x, d), kernel);
      if (!fits || from_last(a_.stride, d, 1) != kernel) return false;
    }
    return true;
  }

  // A 1-D convolution has no height: its one number is the width's.
  [[nodiscard]] std::int64_t of_height(const std::vector<std::int64_t>& list, std::int64_t unless) const {
    return a_.x.shape.size() == 3 ? unless : from_last(list, 1, unless);
  }

  OperatorSite& site_;
  const Arguments& a_;
  MathType math_;
  bool channels_last_;
};

MatrixShape channel_matrix(const OperatorSite& site, const CapturedTensor& y) {
  const Size& channels = y.shape[1];
  if (channels.per_sample != 0) return {channels, 1};
  const std::int64_t count = std::max<std::int64_t>(1, site.fixed(channels));
  return {{y.elements.fixed / count, y.elements.per_sample / count}, count};
}

std::int64_t groups_of(const OperatorSite& site, const CapturedTensor& x, const CapturedTensor& w,
                       std::size_t argument, bool transposed) {
  // Where groups grow with the batch, each sample has its share of them.
  if (x.shape.size() > 1 && x.shape[1].per_sample != 0) {
    const std::int64_t of_group = transposed ? x.shape[1].per_sample : site.fixed(w.shape[1]);
    return std::max<std::int64_t>(1, x.shape[1].per_sample / std::max<std::int64_t>(1, of_group));
  }
  const std::int64_t groups = site.whole(argument);
  if (groups < 1 || x.shape.size() < 2 || x.shape[1].fixed % groups != 0)
    site.fail(argument, "a number of groups that divides the input's channels");
  return groups;
}

// `first`: the argument from which on stride, padding, dilation, transposed, output_padding, groups are.
Arguments arguments_of(const OperatorSite& site, const CapturedTensor& x, const CapturedTensor& w,
                       const CapturedTensor& y, std::size_t first) {
  const bool transposed = site.flag(first + 3);
  return {.x = x,
          .w = w,
          .y = y,
          .stride = site.wholes(first),
          .padding = site.wholes(first + 1),
          .dilation = site.wholes(first + 2),
          .transposed = transposed,
          .groups = groups_of(site, x, w, first + 5, transposed)};
}

// The tensor with samples as channels and channels as samples.
CapturedTensor swapped(const CapturedTensor& tensor) {
  CapturedTensor other = tensor;
  std::swap(other.shape[0], other.shape[1]);
  std::swap(other.strides[0], other.strides[1]);
  return other;
}

// True for the gradient of weights that autograd needs for the gradient of a gradient: the convolution of an
// image with a gradient map, whose channels are the samples (_convolution_double_backward in ATen's
// native/Convolution.cpp).
bool convolves_with_gradient(const OperatorSite& site) {
  const CapturedTensor& w = site.tensor(1);
  return w.shape.size() > 2 && w.shape[1].per_sample != 0 && !site.flag(6);
}

// The pass that makes such a gradient in a backward pass: stride and dilation change places.
void lower_convolution_with_gradient(OperatorSite& site) {
  const CapturedTensor x = swapped(site.tensor(0)), dy = swapped(site.tensor(1)),
                       dw = swapped(site.output(0));
  const Arguments arguments{.x = x,
                            .w = dw,
                            .y = dy,
                            .stride = site.wholes(5),
                            .padding = site.wholes(4),
                            .dilation = site.wholes(3)};
  Convolution(site, arguments).run(Phase::backward_weights);
}

}  // namespace

bool is_channels_last(const CapturedTensor& tensor) {
  return tensor.shape.size() > 2 && tensor.shape[1] != fixed_size(1) && tensor.strides[1] == fixed_size(1) &&
         tensor.strides.back() != fixed_size(1);
}

void lower_convolution(OperatorSite& site) {
  if (convolves_with_gradient(site)) return lower_convolution_with_gradient(site);
  const CapturedTensor& y = site.output(0);
  const Arguments arguments = arguments_of(site, site.tensor(0), site.tensor(1), y, 3);
  Convolution convolution(site, arguments);
  convolution.run(Phase::forward);
  if (site.find_tensor(2) == nullptr || convolution.adds_bias()) return;
  Kernel bias = bytes_kernel(KernelKind::elementwise, site.phase, "bias_add", y.elements, 1, bytes_of(y),
                             bytes_of(y), bytes_of(y.dtype));
  bias.shape = channel_matrix(site, y);
  bias.access = Access::elements;
  site.emit(std::move(bias));
}

void lower_convolution_backward(OperatorSite& site) {
  const CapturedTensor& dy = site.tensor(0);
  const Arguments arguments = arguments_of(site, site.tensor(1), site.tensor(2), dy, 4);
  Convolution convolution(site, arguments);
  if (site.flag_of_list(10, 2)) {
    Kernel bias = bytes_kernel(KernelKind::reduction, Phase::backward_weights, "bias_gradient", dy.elements,
                               1, bytes_of(dy), dy.shape[1] * bytes_of(dy.dtype), bytes_of(dy.dtype));
    bias.shape = channel_matrix(site, dy);
    if (is_channels_last(dy)) bias.access = Access::columns;
    site.emit(std::move(bias));
  }
  if (site.flag_of_list(10, 1)) convolution.run(Phase::backward_weights);
  if (site.flag_of_list(10, 0)) convolution.run(Phase::backward_data);
}

}  // namespace tbdsim
