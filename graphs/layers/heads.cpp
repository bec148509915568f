// split_heads: {positions, features} -> {heads, positions, features / heads}, of one of `parts` equal parts
// of the features. merge_heads: back. transpose: {a, b} -> {b, a}, or any order of dimensions. Frameworks
// copy, because what reads them, GEMMs among them, needs the last dimensions to be contiguous.
#include <algorithm>
#include <vector>

#include "graphs/layers/layer_types.h"
#include "graphs/layers/mirrored_layer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostHeads = 1'000'000, kMostDimensions = 8;

void require_dimensions(const Shape& shape, std::size_t count, const char* expected) {
  if (shape.dims.size() != count)
    throw ShapeMismatch("input has shape " + to_text(shape) + "; expected " + expected);
}

// A copy of the same elements in another order.
class Permuted : public MirroredLayer {
  void run(const LayerContext& site, const LoweringContext& how, Phase phase,
           std::vector<Kernel>& kernels) const override {
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::transpose, phase, "transpose", site.output, 0, y, y));
  }
};

class Transpose : public Permuted {
 public:
  explicit Transpose(SpecMap& keys) {
    const auto order = keys.find("order");
    if (!order) return;
    order_.clear();
    for (const SpecNode& place : order->list())
      order_.push_back(static_cast<std::size_t>(place.count(0, kMostDimensions - 1)));
    std::vector<std::size_t> sorted = order_;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] != i) order->fail("is no order of dimensions; expected each from 0 once, as [1, 0, 2]");
    }
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    const bool two = order_.size() == 2;
    require_dimensions(inputs[0], order_.size(),
                       two ? "two dimensions" : "as many dimensions as `order` has");
    Shape output{inputs[0].rows, {}};
    for (const std::size_t place : order_) output.dims.push_back(inputs[0].dims[place]);
    return output;
  }

 private:
  std::vector<std::size_t> order_ = {1, 0};  // dimensions of the input, in the output's order
};

class SplitHeads : public Permuted {
 public:
  explicit SplitHeads(SpecMap& keys) : heads_(keys.at("heads").count(1, kMostHeads)) {
    if (const auto parts = keys.find("parts")) parts_ = parts->count(1, kMostHeads);
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    require_dimensions(inputs[0], 2, "positions x features");
    const std::int64_t features = inputs[0].dims[1];
    const std::int64_t share = checked_multiply(heads_, parts_);
    if (features % share != 0)
      throw ShapeMismatch("input has " + std::to_string(features) + " features; expected a multiple of " +
                          std::to_string(share));
    return {inputs[0].rows, {heads_, inputs[0].dims[0], features / share}};
  }
  [[nodiscard]] std::int64_t parts() const override { return parts_; }

 private:
  std::int64_t heads_;
  std::int64_t parts_ = 1;
};

class MergeHeads : public Permuted {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    require_dimensions(inputs[0], 3, "heads x positions x features");
    const std::vector<std::int64_t>& dims = inputs[0].dims;
    return {inputs[0].rows, {dims[1], checked_multiply(dims[0], dims[2])}};
  }
};

}  // namespace

std::unique_ptr<Layer> make_transpose(SpecMap& keys) { return std::make_unique<Transpose>(keys); }
std::unique_ptr<Layer> make_split_heads(SpecMap& keys) { return std::make_unique<SplitHeads>(keys); }
std::unique_ptr<Layer> make_merge_heads(SpecMap&) { return std::make_unique<MergeHeads>(); }

}  // namespace tbdsim
