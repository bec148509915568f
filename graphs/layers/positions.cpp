// Positions of a sequence {positions, features}, moved:
//   select_positions   `count` of them (all, in another order, without), gathered; `first: true`: the first, a view
//   place_positions    put back where they were gathered from, others being zero
//   shift_positions    each one place later
//   copy               parts of the features copied apart, for layers that read parts
#include "graphs/layers/layer_types.h"
#include "graphs/layers/mirrored_layer.h"

namespace tbdsim {
namespace {

const Shape& positions_input(std::span<const Shape> inputs) {
  require_inputs(inputs, 1);
  if (inputs[0].dims.size() != 2)
    throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected positions x features");
  return inputs[0];
}

// Rows of `moved` read in one order and written in another.
void gather(const Shape& moved, const LoweringContext& how, Phase phase, std::vector<Kernel>& kernels) {
  const Size bytes = stored_bytes(moved, how.precision);
  kernels.push_back(memory_kernel(KernelKind::gather, phase, "gather", moved, 0,
                                  bytes + positions(moved) * kIndexBytes, bytes));
  kernels.back().shape = position_matrix(moved);
}

// The same into a tensor of zeros.
void scatter(const Shape& moved, const Shape& into, const LoweringContext& how, Phase phase,
             std::vector<Kernel>& kernels) {
  kernels.push_back(
      memory_kernel(KernelKind::elementwise, phase, "fill", into, 0, {}, stored_bytes(into, how.precision)));
  gather(moved, how, phase, kernels);
  kernels.back().op = "scatter";
}

class SelectPositions : public Layer {
 public:
  explicit SelectPositions(SpecMap& keys) {
    if (const auto count = keys.find("count")) count_ = count->count(1, kLargestDimension);
    if (const auto first = keys.find("first")) first_ = first->flag();
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& x = positions_input(inputs);
    if (count_ > x.dims[0])
      throw ShapeMismatch("input has " + std::to_string(x.dims[0]) + " positions; expected " +
                          std::to_string(count_) + " or more");
    return {x.rows, {count_ > 0 ? count_ : x.dims[0], x.dims[1]}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    if (!first_) gather(site.output, how, Phase::forward, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) scatter(site.output, site.inputs[0], how, Phase::backward_data, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool is_view(const Lowering&) const override { return first_; }

 private:
  std::int64_t count_ = 0;  // 0: all
  bool first_ = false;
};

class PlacePositions : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return positions_input(inputs);
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    scatter(site.inputs[0], site.output, how, Phase::forward, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) gather(site.inputs[0], how, Phase::backward_data, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
};

class ShiftPositions : public MirroredLayer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return positions_input(inputs);
  }

 private:
  void run(const LayerContext& site, const LoweringContext& how, Phase phase,
           std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "pad", site.output, 0, x, x));
  }
};

class Copy : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "copy", site.output, 0, x, x));
  }
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool passes_gradient_through() const override { return true; }
};

}  // namespace

std::unique_ptr<Layer> make_select_positions(SpecMap& keys) {
  return std::make_unique<SelectPositions>(keys);
}
std::unique_ptr<Layer> make_place_positions(SpecMap&) { return std::make_unique<PlacePositions>(); }
std::unique_ptr<Layer> make_shift_positions(SpecMap&) { return std::make_unique<ShiftPositions>(); }
std::unique_ptr<Layer> make_copy(SpecMap&) { return std::make_unique<Copy>(); }

}  // namespace tbdsim
