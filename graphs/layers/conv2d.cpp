// conv2d: out[n,k,p,q] = bias[k] + sum_{c,r,s} in[n,c,p*stride+r*dilation-pad,q*stride+s*dilation-pad] *
// weight[k,c,r,s], c running over the channels of k's group.
//
// `epilogue` is what its kernel does to what it has computed: nothing, add the bias, or add it and apply ReLU
// (cuDNN's runtime fusion, apex.contrib.conv_bias_relu). A frozen norm between the two is a bias whose scale
// is in the same kernel. Backward, one kernel masks the gradient and sums it for the bias.
#include "graphs/depthwise.h"
#include "graphs/image_product.h"
#include "graphs/layers/bias.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/window.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostFilters = 10'000'000;

enum class Epilogue { none, bias, relu };

class Conv2d : public Layer {
 public:
  explicit Conv2d(SpecMap& keys)
      : filters_(keys.at("filters").count(1, kMostFilters)), window_(read_window(keys)) {
    if (const auto bias = keys.find("bias")) bias_ = bias->flag();
    if (const auto epilogue = keys.find("epilogue")) {
      epilogue_ = static_cast<Epilogue>(epilogue->one_of({"none", "bias", "relu"}));
      if (epilogue_ == Epilogue::bias && !bias_)
        epilogue->fail("is bias in a convolution without one; expected bias: true beside it");
    }
    if (const auto groups = keys.find("groups")) {
      groups_ = groups->count(1, filters_);
      if (filters_ % groups_ != 0)
        groups->fail(std::to_string(groups_) + " groups do not divide " + std::to_string(filters_) +
                     " filters; expected a divisor");
    }
    read_dilation(keys, window_);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    if (in.dims[0] % groups_ != 0) {
      throw ShapeMismatch("input has " + std::to_string(in.dims[0]) + " channels, which " +
                          std::to_string(groups_) +
                          " groups do not divide; expected a multiple of the groups");
    }
    const std::int64_t height = window_.height.positions(in.dims[1], "height");
    const std::int64_t width = window_.width.positions(in.dims[2], "width");
    return {in.rows, {filters_, height, width}};
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    std::vector<ParameterTensor> tensors{{"weight", weights(image_input(inputs)), true, true}};
    if (bias_) tensors.push_back({"bias", filters_, true, true});
    return tensors;
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    convolve(site, how, Phase::forward, kernels);
    if (bias_ && epilogue_ == Epilogue::none)
      kernels.push_back(bias_add(site, how, channel_matrix(site.output)));
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (epilogue_ == Epilogue::relu && (site.weight_gradient || site.input_gradient))
      kernels.push_back(masked_gradient(site, how));
    if (site.weight_gradient) {
      if (bias_ && epilogue_ != Epilogue::relu)
        kernels.push_back(bias_gradient(site, how.precision, filters_, channel_matrix(site.output)));
      convolve(site, how, Phase::backward_weights, kernels);
    }
    if (site.input_gradient) convolve(site, how, Phase::backward_data, kernels);
  }

  // dX is linear in the weights and dY: the gradient of dX convolved with the weights is that of dY, and
  // together with dY it yields a gradient of the weights.
  void double_backward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const override {
    convolve(site, how, Phase::forward, kernels);
    if (site.weight_gradient) convolve(site, how, Phase::backward_weights, kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.weight_gradient,
            .output = epilogue_ == Epilogue::relu && (site.weight_gradient || site.input_gradient)};
  }

 private:
  // Reads the output and its gradient, writes the gradient where the output is positive, and sums it.
  [[nodiscard]] Kernel masked_gradient(const LayerContext& site, const LoweringContext& how) const {
    const Size y = stored_bytes(site.output, how.precision);
    Kernel kernel =
        memory_kernel(KernelKind::elementwise, Phase::backward_data, "relu", site.output, 1, y * 2, y);
    kernel.scratch_bytes = y;
    return kernel;
  }

  [[nodiscard]] std::int64_t weights(const Shape& in) const {
    const std::int64_t taps = window_.height.kernel * window_.width.kernel;
    return checked_multiply(checked_multiply(in.dims[0] / groups_, taps), filters_);
  }

  [[nodiscard]] bool as_gemm(const Lowering& lowering) const {
    const bool one_tap = window_.height.kernel * window_.width.kernel == 1;
    const bool strided = window_.height.stride * window_.width.stride != 1;
    const bool padded = window_.height.pad + window_.width.pad != 0;
    const bool lowered = lowering.conv_1x1 == Conv1x1::gemm && lowering.layout == Layout::nhwc;
    return lowered && one_tap && !strided && !padded && groups_ == 1;
  }

  [[nodiscard]] static bool on_tensor_cores(const LoweringContext& how) {
    return how.precision.convolution_math() != MathType::fp32;
  }

  // cuDNN convolves NCHW, or on tensor cores the lowering's layout; other tensors are copied to it. Kernels
  // of groups take images as they are.
  [[nodiscard]] bool transposes(const LoweringContext& how) const {
    return groups_ == 1 &&
           how.lowering.layout != (on_tensor_cores(how) ? how.lowering.tensor_core_layout : Layout::nchw);
  }

  // True for a framework whose library multiplies NCHW images of one-tap convolutions as they are, and copies
  // the results of others back.
  [[nodiscard]] static bool knows_image_products(const LoweringContext& how) {
    return how.lowering.layout == Layout::nchw &&
           tbdsim::knows_image_products(how.precision.convolution_math(), how.lowering);
  }

  [[nodiscard]] bool by_image(const LayerContext& site, const LoweringContext& how, Phase phase) const {
    const ConvShape shape = conv_shape(site, how);
    return knows_image_products(how) && is_image_product(shape) &&
           !copies_images(shape, phase, how.precision.convolution_math());
  }

  // True if the pass copies images to another layout.
  [[nodiscard]] bool copies(const LayerContext& site, const LoweringContext& how, Phase phase) const {
    return transposes(how) && !as_gemm(how.lowering) && !by_image(site, how, phase);
  }

  // A pass with the copies around it. A result is copied back after it, but where the product may run without
  // any copy (TF32, in fp32 instead): those are before it, together.
  void convolve(const LayerContext& site, const LoweringContext& how, Phase phase,
                std::vector<Kernel>& kernels) const {
    const bool copied = copies(site, how, phase);
    const Shape& x = site.inputs[0];
    const Shape& y = site.output;
    const bool of_weights = phase == Phase::backward_weights;
    const auto copy = [&](const Shape& image) {
      if (copied) transpose(how, phase, image, kernels);
    };
    const auto copy_filters = [&] {
      if (knows_image_products(how) && window_.height.kernel * window_.width.kernel > 1)
        copy({fixed_size(1), {weights(x)}});
    };
    const auto copy_back = [&] {
      if (of_weights) return copy_filters();
      if (copies_back(how)) copy(phase == Phase::forward ? y : x);
    };
    copy(phase == Phase::backward_data ? y : x);
    if (of_weights) {
      copy(y);
    } else {
      copy_filters();
    }
    const bool before =
        how.precision.convolution_math() == MathType::tf32 && how.lowering.layout == Layout::nchw;
    if (before) copy_back();
    kernels.push_back(product(site, how, phase));
    if (!before) copy_back();
  }

  // A copy of an image to another layout.
  static void transpose(const LoweringContext& how, Phase phase, const Shape& shape,
                        std::vector<Kernel>& kernels) {
    const Size bytes = stored_bytes(shape, how.precision);
    kernels.push_back(memory_kernel(KernelKind::transpose, phase, "nhwc_nchw", shape, 0, bytes, bytes));
    kernels.back().tf32_only =
        how.precision.convolution_math() == MathType::tf32 && how.lowering.layout == Layout::nchw;
  }

  // Results are copied back; cuDNN's kernels for tensor cores up to version 8 write NCHW themselves
  // ("nhwc2nchw" and "nhwckrsc_nchw" in their names).
  [[nodiscard]] static bool copies_back(const LoweringContext& how) {
    return !on_tensor_cores(how) || how.lowering.layout != Layout::nchw || knows_image_products(how);
  }

  // Multiply-adds of any phase: one for each output pixel and weight of its filter.
  [[nodiscard]] Kernel product(const LayerContext& site, const LoweringContext& how, Phase phase) const {
    const Shape& in = site.inputs[0];
    Kernel kernel;
    kernel.phase = phase;
    kernel.math = how.precision.convolution_math();
    kernel.macs = elements(site.output) * (weights(in) / filters_);
    kernel.flops = kernel.macs * 2;
    const Size x = stored_bytes(in, how.precision);
    const Size y = stored_bytes(site.output, how.precision);
    const Size w = fixed_size(checked_multiply(weights(in), how.precision.storage_bytes));
    if (phase == Phase::forward) {
      kernel.read_bytes = x + w;
      kernel.written_bytes = y;
    } else if (phase == Phase::backward_data) {
      kernel.read_bytes = y + w;
      kernel.written_bytes = x;
    } else {
      kernel.read_bytes = x + y;
      kernel.written_bytes = w;
    }
    if (as_gemm(how.lowering)) {
      kernel.kind = KernelKind::gemm;
      kernel.op = "conv_1x1";
      kernel.shape = gemm_shape(site, phase);
    } else if (phase != Phase::backward_weights && is_half(kernel.math) && by_image(site, how, phase)) {
      kernel.kind = KernelKind::gemm;
      kernel.op = "conv_1x1";
      kernel.shape = image_products(conv_shape(site, how), phase);
    } else {
      kernel.kind = KernelKind::convolution;
      kernel.op = "conv";
      kernel.tf32_only =
          how.precision.convolution_math() == MathType::tf32 && how.lowering.layout == Layout::nhwc;
      const ConvShape shape = conv_shape(site, how);
      if (shape.framework_kernel) kernel.op = "conv_depthwise";
      kernel.shape = shape;
      if (copies(site, how, phase)) kernel.scratch_bytes = x + y;  // the transposed copies
    }
    return kernel;
  }

  [[nodiscard]] ConvShape conv_shape(const LayerContext& site, const LoweringContext& how) const {
    const Shape& in = site.inputs[0];
    ConvShape shape{.images = in.rows,
                    .channels = in.dims[0],
                    .height = in.dims[1],
                    .width = in.dims[2],
                    .filters = filters_,
                    .out_height = site.output.dims[1],
                    .out_width = site.output.dims[2],
                    .kernel_height = window_.height.kernel,
                    .kernel_width = window_.width.kernel,
                    .stride_height = window_.height.stride,
                    .stride_width = window_.width.stride,
                    .pad_height = window_.height.pad_before(in.dims[1]),
                    .pad_width = window_.width.pad_before(in.dims[2]),
                    .groups = groups_,
                    .dilation_height = window_.height.dilation,
                    .dilation_width = window_.width.dilation,
                    .channels_last = how.lowering.layout == Layout::nhwc};
    if (groups_ == 1) return shape;
    shape.framework_kernel = has_framework_kernel(shape, how.precision.convolution_math(),
                                                  how.lowering.layout, how.lowering.depthwise);
    return shape;
  }

  // Pixels are the columns of column-major matrices: Y = W * X, dX = W' * dY, dW = dY * X'.
  [[nodiscard]] GemmShape gemm_shape(const LayerContext& site, Phase phase) const {
    const Size pixels = site.output.rows * checked_multiply(site.output.dims[1], site.output.dims[2]);
    const Size in = fixed_size(site.inputs[0].dims[0]);
    const Size out = fixed_size(filters_);
    if (phase == Phase::forward) return {.m = out, .n = pixels, .k = in};
    if (phase == Phase::backward_data) return {.m = in, .n = pixels, .k = out, .transpose_a = true};
    return {.m = out, .n = in, .k = pixels, .transpose_b = true};
  }

  std::int64_t filters_;
  std::int64_t groups_ = 1;
  Window window_;
  bool bias_ = false;
  Epilogue epilogue_ = Epilogue::none;
};

}  // namespace

std::unique_ptr<Layer> make_conv2d(SpecMap& keys) { return std::make_unique<Conv2d>(keys); }

}  // namespace tbdsim
