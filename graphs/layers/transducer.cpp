// Layers of a recurrent transducer (Graves, arXiv 1211.3711):
//   stack_steps      `factor` steps of a sequence side by side as one, the last padded
//   joint_sum        {frames, features} and {labels, features} added for every pair: {frames, labels, features}
//   transducer_loss  {frames, labels, classes} scores against one label sequence: -log of the probability of all
//                    alignments
#include "graphs/layers/layer_types.h"
#include "graphs/layers/mirrored_layer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargestFactor = 64;
// The logarithm of a sum of two exponentials and two products: maximum (1), differences and exponentials (4),
// sum and logarithm (2), what is added (2).
constexpr std::int64_t kStateFlops = 9;

class StackSteps : public MirroredLayer {
 public:
  explicit StackSteps(SpecMap& keys) : factor_(keys.at("factor").count(2, kLargestFactor)) {}
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.size() != 2)
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected steps x features");
    const std::int64_t steps = (inputs[0].dims[0] + factor_ - 1) / factor_;
    return {inputs[0].rows, {steps, checked_multiply(inputs[0].dims[1], factor_)}};
  }

 private:
  void run(const LayerContext& site, const LoweringContext& how, Phase phase,
           std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "stack_steps", site.output, 0, x, x));
  }
  std::int64_t factor_;
};

class JointSum : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    require_same_rows(inputs);
    const Shape& a = inputs[0];
    const Shape& b = inputs[1];
    if (a.dims.size() != 2 || b.dims.size() != 2 || a.dims[1] != b.dims[1])
      throw ShapeMismatch("inputs have shapes " + to_text(a) + " and " + to_text(b) +
                          "; expected frames x features and labels x as many features");
    return {a.rows, {a.dims[0], b.dims[0], a.dims[1]}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size read =
        stored_bytes(site.inputs[0], how.precision) + stored_bytes(site.inputs[1], how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "joint_sum", site.output, 1,
                                    read, stored_bytes(site.output, how.precision)));
  }
  // A sum over the labels for the frames, and over the frames for the labels.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    for (const Shape& input : site.inputs)
      kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_data, "joint_sum", site.output,
                                      1, stored_bytes(site.output, how.precision),
                                      stored_bytes(input, how.precision)));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
};

// Follows NVIDIA apex contrib.transducer: a log-softmax over the classes, the recursions alpha and beta in
// one kernel with a thread block for each sample, and a kernel that writes the gradient of every score.
class TransducerLoss : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.size() != 3)
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected frames x labels x classes");
    return inputs[0];
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(
        softmax_kernel(Phase::forward, "log_softmax", site.output, how.precision, kSoftmaxFlops, 1));
    const Shape lattice = states(site);
    const Size bytes = elements(lattice) * kFp32Bytes;
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::forward, "transducer_alpha_beta", lattice,
                                    2 * kStateFlops, bytes * 2, bytes * 2));
    kernels.back().shape = position_matrix(lattice);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::softmax, Phase::backward_data, "transducer_loss", site.output,
                                    kSoftmaxFlops, x + elements(states(site)) * (2 * kFp32Bytes), x));
    kernels.back().shape = position_matrix(site.output);
  }
  [[nodiscard]] bool is_loss() const override { return true; }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.output = site.input_gradient, .extra_bytes = elements(states(site)) * (2 * kFp32Bytes)};
  }

 private:
  static Shape states(const LayerContext& site) {
    return {site.output.rows, {site.output.dims[0], site.output.dims[1]}};
  }
};

}  // namespace

std::unique_ptr<Layer> make_stack_steps(SpecMap& keys) { return std::make_unique<StackSteps>(keys); }
std::unique_ptr<Layer> make_joint_sum(SpecMap&) { return std::make_unique<JointSum>(); }
std::unique_ptr<Layer> make_transducer_loss(SpecMap&) { return std::make_unique<TransducerLoss>(); }

}  // namespace tbdsim
