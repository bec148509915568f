// layer_norm: y = gamma * (x - mean) / sqrt(var + eps) + beta, mean and variance of each position over its
// features, or of each image over channels and pixels with a gamma and a beta for each channel.
#include "graphs/group_moments.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/row_norm.h"
#include "graphs/layers/terms.h"

namespace tbdsim {
namespace {

constexpr std::array<std::string_view, 2> kAxesNames = {"features", "image"};

// Operations of a fused kernel on each element. Forward: sum (1), squared deviation and its sum (3),
// normalise (2), scale and shift (1 each). Backward by the input: normalised x (2), dy * gamma (1), its sum
// (1) and that of its product with x (2), dx (4); by the weights: normalised x (2), sum of dy (1) and of dy *
// x (2).
constexpr std::int64_t kForwardFlops = 8;
constexpr std::int64_t kMomentFlops = 4;  // the sums among them
constexpr std::int64_t kBackwardFlops = 10;
constexpr std::int64_t kWeightFlops = 5;

// Composite, over features: tensor2tensor 1.2.7 common_layers.layer_norm_compute_python and what TensorFlow
// 1.3 makes of its gradient (math_grad.py), d = x - mean computed once (common subexpressions are
// eliminated).
constexpr Term kForward[] = {{"mean", 1, 0}, {"sub", 1, 1},         {"square", 1, 1},
                             {"mean", 1, 0}, {"add_epsilon", 0, 0}, {"rsqrt", 0, 0},
                             {"mul", 1, 1},  {"mul", 1, 1},         {"shift", 1, 1}};
constexpr Term kBackwardWeights[] = {{"sum", 1, 0}, {"mul", 2, 1}, {"sum", 1, 0}};  // beta; gamma
constexpr Term kBackwardData[] = {
    {"mul", 1, 1},                                                  // dy * gamma
    {"mul", 1, 1},   {"mul", 2, 1},  {"sum", 1, 0},                 // ... * rsqrt; ... * d
    {"rsqrt", 0, 0}, {"tile", 0, 1}, {"div", 1, 1},                 // of the variance, a mean
    {"mul", 1, 1},   {"mul", 2, 1},                                 // 2 d * that
    {"neg", 1, 1},   {"sum", 1, 0},  {"neg", 1, 1}, {"sum", 1, 0},  // of the mean that was subtracted twice
    {"add", 0, 0},   {"tile", 0, 1}, {"div", 1, 1}, {"add_n", 3, 1}};

// Composite, over an image: tf.nn.moments and tf.nn.batch_normalization, as WGAN-GP's critic
// (improved_wgan_training tflib/ops/layernorm.py) has them: y = x * inv + (beta - mean * inv), inv = rsqrt *
// gamma.
constexpr Term kImageForward[] = {{"mean", 1, 0},  {"squared_difference", 1, 1},
                                  {"mean", 1, 0},  {"add_epsilon", 0, 0},
                                  {"rsqrt", 0, 0}, {"mul", 0, 0, 2},
                                  {"sub", 0, 0},   {"mul", 1, 1},
                                  {"shift", 1, 1}};
constexpr Term kImageBackward[] = {
    {"sum", 1, 0},                                    // of beta - mean * inv
    {"mul", 1, 1},     {"mul", 2, 1}, {"sum", 1, 0},  // dy * inv; of inv
    {"mul", 0, 0, 12},                                // gradients of gamma, beta, rsqrt, mean
    {"tile", 0, 1},    {"div", 1, 1},                 // of the variance
    {"mul", 1, 1},     {"sub", 1, 1}, {"mul", 2, 1},  // of the squared difference
    {"tile", 0, 1},    {"div", 1, 1}, {"add_n", 3, 1}};
// TensorFlow's gradients of the terms above, last first.
constexpr Term kImageDoubleBackward[] = {{"div", 1, 1},     {"sum", 1, 0},     // of the mean's tile
                                         {"mul", 2, 1, 2},  {"mul", 1, 1},     // of 2 dvar * (x - mean)
                                         {"div", 1, 1},     {"sum", 1, 0},     // of the variance's tile
                                         {"mul", 0, 0, 20},                    // an estimate
                                         {"tile", 0, 1},    {"mul", 2, 1, 2},  // of dy * x
                                         {"mul", 1, 1},     {"mul", 2, 1},
                                         {"sum", 1, 0},     {"tile", 0, 1},  // of dy * inv and the sum of dy
                                         {"add_n", 3, 1},   {"add_n", 2, 1}};  // gradients of dy; of x
// PyTorch 1.13, traced: group_norm's backward pass where it is differentiated, and what autograd runs for
// that.
constexpr Term kGroupNormBackward[] = {{"mul", 2, 1},    {"sum", 1, 0, 2}, {"mul", 0, 0, 20},
                                       {"mul", 1, 1, 2}, {"add_n", 2, 1},  {"add", 1, 1}};
constexpr Term kGroupNormDoubleBackward[] = {
    {"sum", 1, 0}, {"mul", 1, 1},     {"mul", 2, 1}, {"sum", 1, 0},     {"mul", 1, 1},      {"mul", 2, 1},
    {"sum", 1, 0}, {"mul", 0, 0, 45}, {"add", 1, 1}, {"mul", 1, 1, 2},  {"add_n", 2, 1, 2}, {"mean", 1, 0},
    {"sub", 1, 1}, {"mul", 1, 1},     {"div", 0, 1}, {"add_n", 2, 1, 2}};

class LayerNorm : public Layer {
 public:
  explicit LayerNorm(SpecMap& keys) {
    if (const auto axes = keys.find("axes")) image_ = axes->one_of(kAxesNames) == 1;
    if (const auto bias = keys.find("bias")) bias_ = bias->flag();
    if (const auto affine = keys.find("affine")) affine_ = affine->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (image_) return image_input(inputs);
    (void)last_dimension(inputs[0]);
    return inputs[0];
  }

  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t channels = image_ ? inputs[0].dims[0] : last_dimension(inputs[0]);
    if (!affine_) return {};
    if (!bias_) return {{"gamma", channels}};
    return {{"gamma", channels}, {"beta", channels}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      append_terms(image_ ? std::span<const Term>(kImageForward) : kForward, sizes(site, Phase::forward),
                   Phase::forward, how.precision, kernels);
      return;
    }
    if (how.lowering.moments_apart && !image_) {
      add(site, how, Phase::forward, kMomentFlops, 1, 0, kernels);
      add(site, how, Phase::forward, kForwardFlops - kMomentFlops, 1, 1, kernels);
      return;
    }
    if (image_) {  // PyTorch's group_norm of one group
      add(site, how, Phase::forward, kMomentFlops, 1, 0, kernels);
      kernels.back().kind = KernelKind::reduction;
      kernels.back().timed_as.reset();
      as_moments_of_groups(kernels.back(), elements_per_row(site.output));
      add(site, how, Phase::forward, kForwardFlops - kMomentFlops, 1, 1, kernels);
    } else {
      append_forward(fused(site), how, kernels);
    }
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (image_) {
      backward_of_image(site, how, kernels);
    } else if (composite(how)) {
      if (site.weight_gradient)
        append_terms(kBackwardWeights, sizes(site), Phase::backward_weights, how.precision, kernels);
      if (site.input_gradient)
        append_terms(kBackwardData, sizes(site), Phase::backward_data, how.precision, kernels);
    } else {
      append_backward(fused(site), site, how, kernels);
    }
  }

  void double_backward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const override {
    if (!image_) throw NoSecondOrder();
    const std::span<const Term> terms =
        composite(how) ? std::span<const Term>(kImageDoubleBackward) : kGroupNormDoubleBackward;
    append_terms(terms, sizes(site), Phase::backward_data, how.precision, kernels);
  }
  [[nodiscard]] bool input_gradient_depends_on_input() const override { return true; }

  // Fused and over images x and its statistics; the composite form over features d and d * rsqrt instead of
  // x.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    const Size statistics = sizes(site).statistics * (2 * kFp32Bytes);
    if (image_ || !composite(how)) return {.inputs = true, .extra_bytes = statistics};
    return {.extra_bytes = stored_bytes(site.output, how.precision) * 2 + statistics};
  }

 private:
  static bool composite(const LoweringContext& how) {
    return how.lowering.layer_norm == Composition::composite;
  }

  [[nodiscard]] MatrixShape matrix(const Shape& shape) const {
    return image_ ? MatrixShape{shape.rows, elements_per_row(shape)} : position_matrix(shape);
  }
  // The backward pass holds the three gradients that it adds; the forward pass one intermediate result at a
  // time.
  [[nodiscard]] TermSizes sizes(const LayerContext& site, Phase phase = Phase::backward_data) const {
    const Shape& x = site.output;
    return {elements(x), image_ ? x.rows * x.dims[0] : positions(x),
            elements(x) * (phase == Phase::forward ? 1 : 3)};
  }

  [[nodiscard]] RowNorm fused(const LayerContext& site) const {
    return {.op = "layer_norm",
            .x = site.output,
            .rows = matrix(site.output),
            .forward_flops = kForwardFlops,
            .data_flops = kBackwardFlops,
            .weight_flops = kWeightFlops,
            .parameters = parameter_rows()};
  }

  // Rows of features that are trained: gamma and beta.
  [[nodiscard]] int parameter_rows() const {
    if (!affine_) return 0;
    return bias_ ? 2 : 1;
  }

  // One kernel for all gradients: x and dy are read for the sums and again for dx.
  void backward_of_image(const LayerContext& site, const LoweringContext& how,
                         std::vector<Kernel>& kernels) const {
    const Phase phase = site.input_gradient ? Phase::backward_data : Phase::backward_weights;
    if (composite(how)) {
      append_terms(kImageBackward, sizes(site), phase, how.precision, kernels);
    } else if (site.differentiated) {
      append_terms(kGroupNormBackward, sizes(site), phase, how.precision, kernels);
    } else if (site.input_gradient) {
      add(site, how, phase, kBackwardFlops + kWeightFlops, 4, 1, kernels);
    } else {
      add(site, how, phase, kWeightFlops, 2, 0, kernels);
    }
  }

  void add(const LayerContext& site, const LoweringContext& how, Phase phase, std::int64_t flops,
           std::int64_t reads, std::int64_t writes, std::vector<Kernel>& kernels) const {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::layer_norm, phase, image_ ? "group_norm" : "layer_norm",
                                    site.output, flops, x * reads, x * writes));
    kernels.back().shape = matrix(site.output);
    // Its bytes count every reading of the image, as those of a batch norm do.
    if (image_) kernels.back().timed_as = KernelKind::batch_norm;
  }

  bool image_ = false;
  bool bias_ = true;
  bool affine_ = true;
};

}  // namespace

std::unique_ptr<Layer> make_layer_norm(SpecMap& keys) { return std::make_unique<LayerNorm>(keys); }

}  // namespace tbdsim
