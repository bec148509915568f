// slice: a part of a tensor, a view of it. pad: zeros around it. expand: the same elements again along
// dimensions that are 1, a view. reduce: the mean, the sum or the largest along dimensions, which are 1 or
// gone in the output. trained: a trained tensor that all samples share, beside a tensor that says how many
// there are.
#include "graphs/layers/resized.h"

#include <array>

namespace tbdsim {
namespace {

constexpr std::int64_t kMostParts = 1'000'000;

void require_room(const Shape& small, const Shape& large) {
  bool fits = small.dims.size() == large.dims.size();
  for (std::size_t i = 0; fits && i < small.dims.size(); ++i) fits = small.dims[i] <= large.dims[i];
  if (!fits)
    throw ShapeMismatch("shapes " + to_text(small) + " and " + to_text(large) +
                        "; expected as many dimensions, and none of the first larger");
}

// Its gradient lies in a tensor of zeros; those of equal parts are put side by side instead.
class Slice : public ResizedLayer {
 public:
  explicit Slice(SpecMap& keys) : ResizedLayer(keys) {
    if (const auto parts = keys.find("parts")) parts_ = parts->count(1, kMostParts);
  }
  void forward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient || parts_ > 1) return;
    zeros(Phase::backward_data, site.inputs[0], how, kernels);
    pass(KernelKind::elementwise, Phase::backward_data, "slice", site.output, site.output, how, kernels);
  }
  [[nodiscard]] std::int64_t parts() const override { return parts_; }
  [[nodiscard]] bool is_view(const Lowering&) const override { return true; }

 private:
  void check(const Shape& input, const Shape& output) const override { require_room(output, input); }
  std::int64_t parts_ = 1;
};

class Pad : public ResizedLayer {
 public:
  using ResizedLayer::ResizedLayer;
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    zeros(Phase::forward, site.output, how, kernels);
    pass(KernelKind::elementwise, Phase::forward, "pad", site.inputs[0], site.inputs[0], how, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient)
      pass(KernelKind::elementwise, Phase::backward_data, "pad", site.inputs[0], site.inputs[0], how,
           kernels);
  }

 private:
  void check(const Shape& input, const Shape& output) const override { require_room(input, output); }
};

class Expand : public ResizedLayer {
 public:
  using ResizedLayer::ResizedLayer;
  void forward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient)
      pass(KernelKind::reduction, Phase::backward_data, "sum", site.output, site.inputs[0], how, kernels);
  }
  [[nodiscard]] bool is_view(const Lowering&) const override { return true; }

 private:
  void check(const Shape& input, const Shape& output) const override { require_room(input, output); }
};

// dx: of a sum dy, spread as a view; of a mean that divided; of the largest, dy where x is y.
class Reduce : public ResizedLayer {
 public:
  explicit Reduce(SpecMap& keys) : ResizedLayer(keys) {
    static constexpr std::array<std::string_view, 3> kNames = {"mean", "sum", "max"};
    if (const auto operation = keys.find("operation")) operation_ = operation->one_of(kNames);
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    pass(KernelKind::reduction, Phase::forward, "reduce", site.inputs[0], site.output, how, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient || operation_ == kSum) return;
    if (operation_ == kMax) {
      pass(KernelKind::elementwise, Phase::backward_data, "eq", site.inputs[0], site.inputs[0], how, kernels);
    }
    pass(KernelKind::elementwise, Phase::backward_data, "reduce", site.output, site.inputs[0], how, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    const bool keeps = operation_ == kMax && site.input_gradient;
    return {.inputs = keeps, .output = keeps};
  }

 private:
  static constexpr std::size_t kSum = 1, kMax = 2;
  void check(const Shape& input, const Shape& output) const override {
    if (elements_per_row(output) > elements_per_row(input))
      throw ShapeMismatch("input has shape " + to_text(input) + "; expected one of no fewer elements than " +
                          to_text(output));
  }
  std::size_t operation_ = 0;
};

class Trained : public ResizedLayer {
 public:
  explicit Trained(SpecMap& keys)
      : ResizedLayer(keys), elements_(keys.at("elements").count(0, kLargestDimension)) {}
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape>) const override {
    if (elements_ == 0) return {};
    return {{"weight", elements_}};
  }
  void forward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.weight_gradient && elements_ > 0)
      pass(KernelKind::reduction, Phase::backward_weights, "sum", site.output, {fixed_size(elements_), {}},
           how, kernels);
  }
  [[nodiscard]] bool is_view(const Lowering&) const override { return true; }

 private:
  void check(const Shape&, const Shape&) const override {}
  std::int64_t elements_;  // of the trained tensor; 0: it is a constant
};

}  // namespace

ResizedLayer::ResizedLayer(SpecMap& keys) {
  const SpecNode dims = keys.at("dims");
  for (const SpecNode& dim : dims.list()) dims_.push_back(dim.count(1, kLargestDimension));
  if (dims_.empty() || dims_.size() > kMostDimensions)
    dims.fail("has " + std::to_string(dims_.size()) + " dimensions; expected 1 to 8, without the batch");
}

Shape ResizedLayer::output_shape(std::span<const Shape> inputs) const {
  require_inputs(inputs, 1);
  Shape output{inputs[0].rows, dims_};
  check(inputs[0], output);
  return output;
}

void ResizedLayer::pass(KernelKind kind, Phase phase, std::string_view op, const Shape& from, const Shape& to,
                        const LoweringContext& how, std::vector<Kernel>& kernels) {
  const bool reduces = kind == KernelKind::reduction;
  kernels.push_back(memory_kernel(kind, phase, op, reduces ? from : to, reduces ? 1 : 0,
                                  stored_bytes(from, how.precision), stored_bytes(to, how.precision)));
}

void ResizedLayer::zeros(Phase phase, const Shape& shape, const LoweringContext& how,
                         std::vector<Kernel>& kernels) {
  kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "fill", shape, 0, {},
                                  stored_bytes(shape, how.precision)));
}

std::unique_ptr<Layer> make_slice(SpecMap& keys) { return std::make_unique<Slice>(keys); }
std::unique_ptr<Layer> make_pad(SpecMap& keys) { return std::make_unique<Pad>(keys); }
std::unique_ptr<Layer> make_expand(SpecMap& keys) { return std::make_unique<Expand>(keys); }
std::unique_ptr<Layer> make_reduce(SpecMap& keys) { return std::make_unique<Reduce>(keys); }
std::unique_ptr<Layer> make_trained(SpecMap& keys) { return std::make_unique<Trained>(keys); }

}  // namespace tbdsim
