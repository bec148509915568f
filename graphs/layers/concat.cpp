// concat: inputs side by side along the first dimension (channels), the last (features), or as further rows.
#include "graphs/layers/joins.h"
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

enum class Axis { first, last, rows };
constexpr std::array<std::string_view, 3> kAxisNames = {"first", "last", "rows"};

class Concat : public Layer {
 public:
  explicit Concat(SpecMap& keys) {
    if (const auto axis = keys.find("axis")) axis_ = static_cast<Axis>(axis->one_of(kAxisNames));
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    if (inputs.size() < 2) {
      throw ShapeMismatch("has " + std::to_string(inputs.size()) +
                          " inputs; expected two or more, 'from: [a, b]'");
    }
    if (axis_ == Axis::rows) return all_rows(inputs);
    require_same_rows(inputs);
    Shape output = inputs[0];
    for (const Shape& shape : inputs.subspan(1)) {
      Shape same = shape;
      if (!same.dims.empty() && !output.dims.empty()) joined(same) = joined(output);
      if (same != output || output.dims.empty()) {
        throw ShapeMismatch("inputs have shapes " + to_text(inputs[0]) + " and " + to_text(shape) +
                            "; expected shapes that differ in the " +
                            (axis_ == Axis::last ? "last dimension" : "channels") + " only");
      }
      joined(output) =
          checked_add(joined(output), shape.dims[axis_ == Axis::last ? shape.dims.size() - 1 : 0]);
    }
    return output;
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    append_join("concat", Phase::forward, parts(site), how, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) append_slices("concat", Phase::backward_data, parts(site), how, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool gradient_is_view(const Lowering& lowering) const override {
    return lowering.joins == ConcatLowering::views;
  }

 private:
  static Shape all_rows(std::span<const Shape> inputs) {
    Shape output = inputs[0];
    for (const Shape& shape : inputs.subspan(1)) {
      if (shape.dims != output.dims) {
        throw ShapeMismatch("inputs have rows of shapes " + to_text(inputs[0]) + " and " + to_text(shape) +
                            "; expected rows of one shape");
      }
      output.rows += shape.rows;
    }
    return output;
  }

  [[nodiscard]] std::int64_t& joined(Shape& shape) const {
    return axis_ == Axis::last ? shape.dims.back() : shape.dims.front();
  }

  static std::vector<Size> parts(const LayerContext& site) {
    std::vector<Size> parts;
    for (const Shape& shape : site.inputs) parts.push_back(elements(shape));
    return parts;
  }

  Axis axis_ = Axis::first;
};

}  // namespace

std::unique_ptr<Layer> make_concat(SpecMap& keys) { return std::make_unique<Concat>(keys); }

}  // namespace tbdsim
