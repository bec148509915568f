// batch_norm: y = gamma * (x - mean) / sqrt(var + eps) + beta, mean and variance over rows and pixels per
// channel; or, with `statistics: global`, the moving ones of an earlier training. Without pixels the last
// dimension is the channels.
#include "graphs/aten_batch_norm.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/loads_rows.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

// Operations on each element. Forward: sum (1), squared deviation (2), normalise (1), scale and shift (1
// each). Backward: sum of dy (1), normalised x (2), sum of dy * x (2), dx = gamma / std * (dy - mean - x *
// mean) (4).
constexpr std::int64_t kForwardFlops = 6;
constexpr std::int64_t kBackwardFlops = 9;
constexpr std::int64_t kSumFlops = 5;    // the backward pass without dx
constexpr std::int64_t kCountBytes = 8;  // of the number of batches, an int64

ImageShape image_of(const Shape& shape) {
  if (shape.dims.size() == 3) return image_shape(shape);
  return {.images = positions(shape), .channels = last_dimension(shape), .height = 1, .width = 1};
}

class BatchNorm : public Layer {
 public:
  explicit BatchNorm(SpecMap& keys) {
    if (const auto scale = keys.find("scale")) scale_ = scale->flag();
    if (const auto shift = keys.find("shift")) shift_ = shift->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.empty() || inputs[0].dims.size() > 3) {
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) +
                          "; expected channels x height x width, or features, or positions x features");
    }
    return inputs[0];
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t channels = image_of(inputs[0]).channels;
    std::vector<ParameterTensor> tensors;
    if (scale_) tensors.push_back({"gamma", channels});
    if (shift_) tensors.push_back({"beta", channels});
    tensors.push_back({"moving_statistics", checked_multiply(2, channels), false});
    return tensors;
  }

  // Statistics need all of x before the first y: x is read twice.
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    if (how.lowering.counts_batches) {
      const Size count = fixed_size(kCountBytes);
      kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "count_batches",
                                      {fixed_size(1), {}}, 1, count, count));
    }
    if (is_own(site, how)) {
      for (Kernel& kernel : forward_kernels(own_norm(site, how))) kernels.push_back(std::move(kernel));
      return;
    }
    transpose(site, how, Phase::forward, kernels);
    add(site, how, Phase::forward, kForwardFlops, x * 2, x, kernels);
    transpose(site, how, Phase::forward, kernels);
  }

  // One kernel for all gradients: x and dy are read for the two sums and again for dx.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (is_own(site, how)) {
      for (Kernel& kernel : backward_kernels(own_norm(site, how), site.input_gradient))
        kernels.push_back(std::move(kernel));
      return;
    }
    const Size x = stored_bytes(site.output, how.precision);
    const Phase phase = site.input_gradient ? Phase::backward_data : Phase::backward_weights;
    transpose(site, how, phase, kernels);
    transpose(site, how, phase, kernels);
    if (site.input_gradient) {
      add(site, how, phase, kBackwardFlops, x * 4, x, kernels);
      transpose(site, how, phase, kernels);
    } else {
      add(site, how, phase, kBackwardFlops, x * 2, {}, kernels);
    }
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {.inputs = true};
  }

 private:
  static void add(const LayerContext& site, const LoweringContext& how, Phase phase, std::int64_t flops,
                  Size read, Size written, std::vector<Kernel>& kernels) {
    kernels.push_back(
        memory_kernel(KernelKind::batch_norm, phase, "batch_norm", site.output, flops, read, written));
    kernels.back().shape = image_of(site.output);
    if (loads_rows(how)) {
      kernels.back().timed_as = KernelKind::elementwise;
      kernels.back().access = Access::pixels;
    }
    kernels.back().channel_blocks = is_nchw(site, how);
    if (!transposes(site, how)) return;
    const int copies = phase == Phase::backward_data ? 3 : 2;  // x and y, or x, dy and dx
    kernels.back().scratch_bytes = stored_bytes(site.output, how.precision) * copies;
  }

  // True where the framework's own kernels compute the norm, not its library's.
  [[nodiscard]] static bool is_own(const LayerContext& site, const LoweringContext& how) {
    return how.lowering.aten_kernels && of_images(site) && how.precision.math == MathType::bf16 &&
           how.precision.storage_bytes < kFp32Bytes;
  }
  [[nodiscard]] static AtenBatchNorm own_norm(const LayerContext& site, const LoweringContext& how) {
    return {.images = image_of(site.output),
            .elements = elements(site.output),
            .element_bytes = how.precision.storage_bytes,
            .channels_last = how.lowering.layout == Layout::nhwc};
  }

  [[nodiscard]] static bool of_images(const LayerContext& site) { return site.output.dims.size() == 3; }

  [[nodiscard]] static bool transposes(const LayerContext& site, const LoweringContext& how) {
    return of_images(site) && how.lowering.norm_layout == NormLayout::nchw &&
           how.lowering.layout == Layout::nhwc;
  }

  // The kernel's images, after their transposition where there is one.
  [[nodiscard]] static bool is_nchw(const LayerContext& site, const LoweringContext& how) {
    return of_images(site) && (how.lowering.layout == Layout::nchw || transposes(site, how));
  }

  static void transpose(const LayerContext& site, const LoweringContext& how, Phase phase,
                        std::vector<Kernel>& kernels) {
    if (!transposes(site, how)) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::transpose, phase, "nhwc_nchw", site.output, 0, x, x));
  }

  bool scale_ = true;
  bool shift_ = true;
};

// Composite, by constant statistics: nn.batch_normalization of TensorFlow 1.3 and its gradients, y = x * inv
// + (beta - mean * inv), inv = rsqrt * gamma.
constexpr Term kGlobalForward[] = {{"add_epsilon", 0, 0}, {"rsqrt", 0, 0}, {"mul", 0, 0, 2},
                                   {"sub", 0, 0},         {"mul", 1, 1},   {"shift", 1, 1}};
constexpr Term kGlobalBackwardWeights[] = {{"sum", 1, 0},                 // of beta - mean * inv
                                           {"mul", 2, 1}, {"sum", 1, 0},  // of inv
                                           {"neg", 0, 0}, {"mul", 0, 0, 2}, {"add_n", 0, 0}};
constexpr Term kGlobalBackwardData[] = {{"mul", 1, 1}};

// Mean and variance are constants: y = scale * x + shift, dx = scale * dy.
class GlobalBatchNorm : public BatchNorm {
 public:
  using BatchNorm::BatchNorm;

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (how.lowering.global_norm == GlobalNorm::composite) {
      append_terms(kGlobalForward, sizes(site), Phase::forward, how.precision, kernels);
      return;
    }
    const Size x = stored_bytes(site.output, how.precision);
    fused(site, KernelKind::elementwise, Phase::forward, 2, x, x, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (how.lowering.global_norm == GlobalNorm::composite) {
      if (site.weight_gradient)
        append_terms(kGlobalBackwardWeights, sizes(site), Phase::backward_weights, how.precision, kernels);
      if (site.input_gradient)
        append_terms(kGlobalBackwardData, sizes(site), Phase::backward_data, how.precision, kernels);
      return;
    }
    const Size x = stored_bytes(site.output, how.precision);
    const bool sums = site.weight_gradient || how.lowering.global_norm == GlobalNorm::summing;
    if (!site.input_gradient) {  // the sums of dy and of dy * x
      fused(site, KernelKind::batch_norm, Phase::backward_weights, kSumFlops, x * 2, {}, kernels);
    } else if (sums) {
      fused(site, KernelKind::batch_norm, Phase::backward_data, kSumFlops + 1, x * 3, x, kernels);
    } else {
      fused(site, KernelKind::elementwise, Phase::backward_data, 1, x, x, kernels);
    }
  }

  // A fused kernel keeps x even where its sums are not needed.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    const bool keeps_all = how.lowering.global_norm != GlobalNorm::composite ||
                           how.lowering.product_keeps == SavedMatmulInputs::both;
    return {.inputs = site.weight_gradient || keeps_all};
  }

 private:
  static void fused(const LayerContext& site, KernelKind kind, Phase phase, std::int64_t flops, Size read,
                    Size written, std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(kind, phase, "affine_norm", site.output, flops, read, written));
    kernels.back().shape = image_of(site.output);
  }

  static TermSizes sizes(const LayerContext& site) {
    return {.elements = elements(site.output),
            .statistics = fixed_size(image_of(site.output).channels),
            .scratch = {}};
  }
};

}  // namespace

std::unique_ptr<Layer> make_batch_norm(SpecMap& keys) {
  const auto statistics = keys.find("statistics");
  if (statistics && statistics->one_of({"batch", "global"}) == 1) {
    return std::make_unique<GlobalBatchNorm>(keys);
  }
  return std::make_unique<BatchNorm>(keys);
}

}  // namespace tbdsim
