// Layers that move a sequence {steps, ...} and compute nothing: unstack and stack (into tensors of one step
// for unrolled layers, and back), sequence_reverse, sequence_last, fold_time.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

const Shape& steps_input(std::span<const Shape> inputs) {
  require_inputs(inputs, 1);
  if (inputs[0].dims.size() < 2)
    throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected steps x features");
  return inputs[0];
}

Kernel copy(KernelKind kind, Phase phase, std::string_view op, const Shape& shape,
            const LoweringContext& how) {
  const Size bytes = stored_bytes(shape, how.precision);
  return memory_kernel(kind, phase, op, shape, 0, bytes, bytes);
}

// A sequence into its steps (`apart`), or the steps into a sequence. Taken apart, or handed back in the
// gradient, step by step, unless steps are views.
class Steps : public Layer {
 public:
  explicit Steps(bool apart) : apart_(apart) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return steps_input(inputs);
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    append(Phase::forward, apart_, site, how, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) append(Phase::backward_data, !apart_, site, how, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool is_view(const Lowering& lowering) const override {
    return apart_ && lowering.joins == ConcatLowering::views;
  }
  [[nodiscard]] bool gradient_is_view(const Lowering& lowering) const override {
    return !apart_ && lowering.joins == ConcatLowering::views;
  }
  [[nodiscard]] std::int64_t output_pieces(const LayerContext& site, const Lowering&) const override {
    return apart_ ? site.output.dims[0] : 1;
  }

 private:
  static void append(Phase phase, bool apart, const LayerContext& site, const LoweringContext& how,
                     std::vector<Kernel>& kernels) {
    const std::string_view op = apart ? "unstack" : "stack";
    if (apart && how.lowering.joins == ConcatLowering::views) return;
    if (!apart && how.lowering.joins != ConcatLowering::parts) {
      kernels.push_back(copy(KernelKind::elementwise, phase, op, site.output, how));
      return;
    }
    Shape step = site.output;
    step.dims.erase(step.dims.begin());
    kernels.push_back(copy(KernelKind::elementwise, phase, op, step, how));
    kernels.back().repeat = site.output.dims[0];
  }

  bool apart_;
};

// Each sample from its own last step to the first, its padding left at the end; `lengths: false`: all steps.
// `parallel: false` is the kernel of MXNet before its repair: one thread for each step copies the numbers of
// all samples one after another, each load after the previous store (ReverseKernel as compiled in the package
// mxnet-cu80 1.0.0). Its rows are these numbers, its columns the steps.
class SequenceReverse : public Layer {
 public:
  explicit SequenceReverse(SpecMap& keys) {
    const auto lengths = keys.find("lengths");
    const auto parallel = keys.find("parallel");
    const bool flips = lengths && !lengths->flag();
    const bool is_parallel = parallel && parallel->flag();
    if (flips && is_parallel) parallel->fail("is true with 'lengths: false'; expected one of both");
    if (flips) op_ = "flip";
    if (is_parallel) op_ = "parallel_sequence_reverse";
    thread_per_row_ = !flips && !is_parallel;
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return steps_input(inputs);
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    append(Phase::forward, site, how, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) append(Phase::backward_data, site, how, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }

 private:
  void append(Phase phase, const LayerContext& site, const LoweringContext& how,
              std::vector<Kernel>& kernels) const {
    kernels.push_back(copy(KernelKind::gather, phase, op_, site.output, how));
    const std::int64_t steps = site.output.dims[0];
    kernels.back().shape = MatrixShape{site.output.rows * (elements_per_row(site.output) / steps), steps};
    kernels.back().thread_per_row = thread_per_row_;
  }

  std::string_view op_ = "sequence_reverse";
  bool thread_per_row_ = true;
};

// The last step of each sample that is no padding; its gradient is zero everywhere else.
class SequenceLast : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    Shape step = steps_input(inputs);
    step.dims.erase(step.dims.begin());
    return step;
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(copy(KernelKind::gather, Phase::forward, "sequence_last", site.output, how));
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", site.inputs[0], 0,
                                    {}, stored_bytes(site.inputs[0], how.precision)));
    kernels.push_back(copy(KernelKind::gather, Phase::backward_data, "sequence_last", site.output, how));
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
};

// The image {channels, time, frequencies} as the sequence {time, channels x frequencies}: a transposed copy.
class FoldTime : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    return {in.rows, {in.dims[1], checked_multiply(in.dims[0], in.dims[2])}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    append(Phase::forward, site, how, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) append(Phase::backward_data, site, how, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool is_view(const Lowering& lowering) const override {
    return lowering.layout == Layout::nhwc;
  }
  [[nodiscard]] bool gradient_is_view(const Lowering& lowering) const override { return is_view(lowering); }

 private:
  // Channels last, each step is together already: the same memory read as another shape.
  static void append(Phase phase, const LayerContext& site, const LoweringContext& how,
                     std::vector<Kernel>& kernels) {
    if (how.lowering.layout == Layout::nhwc) return;
    kernels.push_back(copy(KernelKind::transpose, phase, "transpose", site.output, how));
  }
};

}  // namespace

std::unique_ptr<Layer> make_unstack(SpecMap&) { return std::make_unique<Steps>(true); }
std::unique_ptr<Layer> make_stack(SpecMap&) { return std::make_unique<Steps>(false); }
std::unique_ptr<Layer> make_sequence_reverse(SpecMap& keys) {
  return std::make_unique<SequenceReverse>(keys);
}
std::unique_ptr<Layer> make_sequence_last(SpecMap&) { return std::make_unique<SequenceLast>(); }
std::unique_ptr<Layer> make_fold_time(SpecMap&) { return std::make_unique<FoldTime>(); }

}  // namespace tbdsim
