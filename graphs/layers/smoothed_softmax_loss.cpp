// smoothed_softmax_loss: cross entropy of softmax(x) against labels of which a small share is spread over all
// classes (Szegedy et al., arXiv 1512.00567), of each row or position. Key: `classes`, sum (default) or mean,
// what the program takes of the logarithms of all classes.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/terms.h"
#include "graphs/layers/wide_terms.h"

namespace tbdsim {
namespace {

// Composite: tensor2tensor 1.2.7 common_layers.smoothing_cross_entropy makes targets for all classes, then
// TensorFlow 1.3 (xent_op.h, whose every eval() and assignment is a kernel) makes the loss and the gradient
// p - target; backward multiplies that by the loss's gradient. Small kernels weight and sum the losses.
constexpr Term kForward[] = {{"one_hot", 0, 1}, {"max", 1, 0}, {"sub", 1, 1},
                             {"exp_sum", 1, 0}, {"log", 0, 0}, {"mul", 2, 1},
                             {"sum", 1, 0},     {"sub", 2, 1}, {"mul", 0, 0, 4}};
constexpr Term kBackward[] = {{"mul", 0, 0, 2}, {"mul", 1, 1}};

// PyTorch 1.13, traced: cross_entropy with label_smoothing is a log-softmax, the likelihood of the label and
// the sum of all, whose gradients are written out and added before the log-softmax's own. Logarithms and
// their gradient are fp32 whatever the scores are: torch.autocast's list of operators has log_softmax, and
// NVIDIA's GNMT asks for it (DeepLearningExamples, seq2seq/train/smoothing.py: dtype=torch.float32), from
// memory.
constexpr WideTerm kSums[] = {{"sum", 0, 1}, {"mul", 0, 0, 0, 0, false, 10}};
constexpr WideTerm kSumGradients[] = {
    {"mul", 0, 0, 0, 0, false, 11}, {"fill", 0, 0, 0, 1}, {"add", 0, 1, 0, 1}};
// A program that takes the mean over the classes, as NVIDIA's GNMT: its gradient is divided, which writes one
// for each class (tools/autograd/derivatives.yaml, mean), where that of a sum is the same number read again.
constexpr WideTerm kMeanGradients[] = {
    {"mul", 0, 0, 0, 0, false, 11}, {"fill", 0, 0, 0, 1}, {"div", 0, 0, 0, 1}, {"add", 0, 2, 0, 1}};
// apex.contrib.xentropy (`loss: fused`): one kernel that keeps the logarithm of each row's sum, and one that
// makes the gradient of the scores again from them.
constexpr Term kFusedForward[] = {{"softmax_xentropy", 1, 0}};
constexpr Term kFusedBackward[] = {{"softmax_xentropy", 1, 1}};
constexpr std::int64_t kForwardFlops = 5;  // maximum, difference, exponential, sum, difference
constexpr std::int64_t kBackwardFlops = 4;

// The kernel of dx = dy - exp(y) * sum of dy. It goes through its tensors once, but where registers hold no
// row, of more than 1,024 columns, through dy twice (aten/native/cuda/SoftMax.cu, cunn_SoftMaxBackward).
Kernel log_softmax_gradient(const Shape& scores, const Precision& precision) {
  constexpr std::int64_t kMostInRegisters = 1'024;
  Kernel kernel = softmax_kernel(Phase::backward_data, "log_softmax", scores, precision, kBackwardFlops, 2);
  const std::int64_t passes = scores.dims.back() > kMostInRegisters ? 3 : 2;
  kernel.read_bytes = elements(scores) * (kFp32Bytes * passes);
  kernel.timed_as = KernelKind::elementwise;
  return kernel;
}

class SmoothedSoftmaxLoss : public Layer {
 public:
  explicit SmoothedSoftmaxLoss(SpecMap& keys) {
    if (const auto others = keys.find("classes")) mean_ = others->one_of({"sum", "mean"}) == 1;
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return class_scores(inputs);
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (composite(how)) {
      append_terms(kForward, position_sizes(site.output, 2), Phase::forward, how.precision, kernels);
      return;
    }
    if (fused(how)) {
      append_terms(kFusedForward, position_sizes(site.output, 0), Phase::forward, how.precision, kernels);
      return;
    }
    kernels.push_back(
        softmax_kernel(Phase::forward, "log_softmax", site.output, how.precision, kForwardFlops, 1));
    kernels.back().written_bytes = wide(site.output);
    append_wide_terms(kSums, wide_sizes(site.output, 0), Phase::forward, how.precision, kernels);
  }

  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    if (composite(how)) {
      append_terms(kBackward, position_sizes(site.output, 0), Phase::backward_data, how.precision, kernels);
      return;
    }
    if (fused(how)) {
      append_terms(kFusedBackward, position_sizes(site.output, 0), Phase::backward_data, how.precision,
                   kernels);
      return;
    }
    const std::span<const WideTerm> gradients =
        mean_ ? std::span<const WideTerm>(kMeanGradients) : kSumGradients;
    append_wide_terms(gradients, wide_sizes(site.output, mean_ ? 2 : 1), Phase::backward_data, how.precision,
                      kernels);
    kernels.push_back(log_softmax_gradient(site.output, how.precision));
  }

  [[nodiscard]] bool is_loss() const override { return true; }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    if (fused(how)) return {.inputs = site.input_gradient};
    if (!site.input_gradient || composite(how) || is_wide(how.precision))
      return {.output = site.input_gradient};
    return {.output = true,
            .extra_bytes = elements(site.output) * (kFp32Bytes - how.precision.storage_bytes)};
  }

 private:
  static Size wide(const Shape& scores) { return elements(scores) * kFp32Bytes; }
  static WideSizes wide_sizes(const Shape& scores, std::int64_t scratch) {
    return {elements(scores), positions(scores), scratch};
  }
  static bool composite(const LoweringContext& how) { return how.lowering.softmax == Composition::composite; }
  static bool fused(const LoweringContext& how) { return how.lowering.loss == LossKernels::fused; }

  bool mean_ = false;  // over all classes, which the label's share is added to; else their sum
};

}  // namespace

std::unique_ptr<Layer> make_smoothed_softmax_loss(SpecMap& keys) {
  return std::make_unique<SmoothedSoftmaxLoss>(keys);
}

}  // namespace tbdsim
