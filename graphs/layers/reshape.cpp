// reshape: the same elements in other dimensions; no kernel, no tensor of its own.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

class Reshape : public Layer {
 public:
  explicit Reshape(SpecMap& keys) {
    const SpecNode dims = keys.at("dims");
    for (const SpecNode& dim : dims.list()) dims_.push_back(dim.count(1, kLargestDimension));
    if (dims_.empty() || dims_.size() > kMostDimensions) {
      dims.fail("has " + std::to_string(dims_.size()) + " dimensions; expected 1 to 8, without the batch");
    }
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    Shape shape{inputs[0].rows, dims_};
    if (elements_per_row(shape) != elements_per_row(inputs[0])) {
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected as many elements as " +
                          to_text(shape));
    }
    return shape;
  }

  void forward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  void double_backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool passes_gradient_through() const override { return true; }
  [[nodiscard]] bool is_view(const Lowering&) const override { return true; }

 private:
  std::vector<std::int64_t> dims_;
};

}  // namespace

std::unique_ptr<Layer> make_reshape(SpecMap& keys) { return std::make_unique<Reshape>(keys); }

}  // namespace tbdsim
