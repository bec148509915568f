// split_heads: {positions, features} -> {heads, positions, features / heads}, of one of `parts` equal parts
// of the features. merge_heads: back. transpose: {a, b} -> {b, a}. Frameworks copy, because GEMMs need the
// positions of each head to be contiguous.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/mirrored_layer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostHeads = 1'000'000;

class Transpose : public MirroredLayer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    require_dimensions(inputs[0], 2, "two dimensions");
    return {inputs[0].rows, {inputs[0].dims[1], inputs[0].dims[0]}};
  }

 protected:
  static void require_dimensions(const Shape& shape, std::size_t count, const char* expected) {
    if (shape.dims.size() != count)
      throw ShapeMismatch("input has shape " + to_text(shape) + "; expected " + expected);
  }

 private:
  void run(const LayerContext& site, const LoweringContext& how, Phase phase,
           std::vector<Kernel>& kernels) const override {
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::transpose, phase, "transpose", site.output, 0, y, y));
  }
};

class SplitHeads : public Transpose {
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

class MergeHeads : public Transpose {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    require_dimensions(inputs[0], 3, "heads x positions x features");
    const std::vector<std::int64_t>& dims = inputs[0].dims;
    return {inputs[0].rows, {dims[1], checked_multiply(dims[0], dims[2])}};
  }
};

}  // namespace

std::unique_ptr<Layer> make_transpose(SpecMap&) { return std::make_unique<Transpose>(); }
std::unique_ptr<Layer> make_split_heads(SpecMap& keys) { return std::make_unique<SplitHeads>(keys); }
std::unique_ptr<Layer> make_merge_heads(SpecMap&) { return std::make_unique<MergeHeads>(); }

}  // namespace tbdsim
