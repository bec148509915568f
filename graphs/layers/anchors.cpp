// anchor_rows: a network's numbers for the anchors of every cell as one row for each anchor. inside_anchors:
// which anchors lie within the image. select_rows: the rows that another layer names, or so many of a sample.
#include <algorithm>
#include <cmath>
#include <optional>

#include "graphs/layers/boxes.h"
#include "graphs/layers/layer_types.h"
#include "graphs/layers/mirrored_layer.h"
#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostValues = 1'000'000;
constexpr std::int64_t kMostPixels = 1'000'000;
constexpr double kLargestBox = 1e6;
constexpr double kMostStretched = 100;
constexpr std::size_t kMostListed = 100;  // sizes, and ratios: every size comes in every ratio

std::vector<double> numbers_of(const SpecNode& node, double least, double most) {
  std::vector<double> numbers;
  for (const SpecNode& number : node.list()) numbers.push_back(number.number(least, most));
  if (numbers.empty() || numbers.size() > kMostListed) {
    node.fail("has " + std::to_string(numbers.size()) + " numbers; expected 1 to " +
              std::to_string(kMostListed));
  }
  return numbers;
}

// Rows that are joined to those of other maps (slices) have a slice of memory as their gradient, which the
// network's layers need in one piece; images of NHWC have an anchor's numbers side by side.
enum class Copied { never, always, slices };
constexpr std::array<std::string_view, 3> kCopied = {"false", "true", "slices"};

class AnchorRows : public MirroredLayer {
 public:
  explicit AnchorRows(SpecMap& keys) : values_(keys.at("values").count(1, kMostValues)) {
    if (const auto copied = keys.find("copied")) copied_ = static_cast<Copied>(copied->one_of(kCopied));
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    if (in.dims[0] % values_ != 0) {
      throw ShapeMismatch("input has " + std::to_string(in.dims[0]) + " channels; expected a multiple of " +
                          std::to_string(values_));
    }
    return {in.rows * (elements_per_row(in) / values_), {values_}};
  }
  [[nodiscard]] bool passes_gradient_through() const override { return copied_ == Copied::never; }
  [[nodiscard]] bool runs_in_place(const Lowering& lowering) const override {
    return !is_copied(lowering, Phase::forward);
  }

 private:
  void run(const LayerContext& site, const LoweringContext& how, Phase phase,
           std::vector<Kernel>& kernels) const override {
    if (!is_copied(how.lowering, phase)) return;
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::transpose, phase, "anchor_rows", site.output, 0, x, x));
  }

  // Rows are another view of the memory where they are not copied.
  [[nodiscard]] bool is_copied(const Lowering& lowering, Phase phase) const {
    if (copied_ != Copied::slices) return copied_ == Copied::always;
    return phase != Phase::forward || lowering.layout == Layout::nchw;
  }

  std::int64_t values_;  // of an anchor
  Copied copied_ = Copied::never;
};

// Anchors of every size and shape around every multiple of `stride` pixels, as TensorFlow's grid has them;
// its inputs give the number of cells and the size of the image. The host sends their indices.
class InsideAnchors : public Layer {
 public:
  explicit InsideAnchors(SpecMap& keys)
      : stride_(keys.at("stride").count(1, kMostPixels)),
        sizes_(numbers_of(keys.at("sizes"), 1, kLargestBox)),
        ratios_(numbers_of(keys.at("ratios"), 1 / kMostStretched, kMostStretched)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 2);
    const Shape& cells = image_input(inputs.first(1));
    const Shape& image = image_input(inputs.last(1));
    std::int64_t anchors = 0;
    for (const double size : sizes_) {
      for (const double ratio : ratios_) {
        const std::int64_t rows = inside(cells.dims[1], image.dims[1], size / std::sqrt(ratio));
        const std::int64_t columns = inside(cells.dims[2], image.dims[2], size * std::sqrt(ratio));
        anchors = checked_add(anchors, checked_multiply(rows, columns));
      }
    }
    if (anchors == 0) throw ShapeMismatch("no anchor lies within the image; expected a larger one");
    return {image.rows * anchors, {1}};
  }

  void forward(const LayerContext& site, const LoweringContext&,
               std::vector<Kernel>& kernels) const override {
    kernels.push_back(host_to_device(elements(site.output)));
  }
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool differentiable() const override { return false; }

 private:
  // Number of the centres 0, stride, ... that are at least half a box away from both borders.
  [[nodiscard]] std::int64_t inside(std::int64_t cells, std::int64_t pixels, double box) const {
    const auto stride = static_cast<double>(stride_);
    const auto first = static_cast<std::int64_t>(std::ceil(box / 2 / stride));
    const auto last = static_cast<std::int64_t>(std::floor((static_cast<double>(pixels) - box / 2) / stride));
    return std::max<std::int64_t>(0, std::min(last, cells - 1) - first + 1);
  }

  std::int64_t stride_;
  std::vector<double> sizes_;   // of a square anchor's edge
  std::vector<double> ratios_;  // width over height, at the same area
};

class SelectRows : public Layer {
 public:
  explicit SelectRows(SpecMap& keys) {
    if (const auto rows = keys.find("rows")) rows_ = rows->count(1, kMostBoxes);
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    if (!rows_) {
      require_inputs(inputs, 2);
      return {inputs[1].rows, inputs[0].dims};
    }
    require_inputs(inputs, 1);
    if (inputs[0].rows.fixed != 0 || inputs[0].rows.per_sample < *rows_)
      throw ShapeMismatch("input has fewer rows of a sample than are selected; expected at least " +
                          std::to_string(*rows_));
    return {{0, *rows_}, inputs[0].dims};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size y = stored_bytes(site.output, how.precision);
    add(site, Phase::forward, y, kernels);
  }

  // Rows that were not selected have a gradient of zero.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", site.inputs[0], 0,
                                    {}, stored_bytes(site.inputs[0], how.precision)));
    add(site, Phase::backward_data, stored_bytes(site.output, how.precision), kernels);
  }

  // The indices are kept: too few numbers to count.
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }

 private:
  static void add(const LayerContext& site, Phase phase, const Size& y, std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(KernelKind::gather, phase, "select_rows", site.output, 0,
                                    y + word_bytes(site.output.rows), y));
    kernels.back().shape = position_matrix(site.output);
  }

  std::optional<std::int64_t> rows_;  // of a sample; empty: those that the second input names
};

}  // namespace

std::unique_ptr<Layer> make_anchor_rows(SpecMap& keys) { return std::make_unique<AnchorRows>(keys); }
std::unique_ptr<Layer> make_inside_anchors(SpecMap& keys) { return std::make_unique<InsideAnchors>(keys); }
std::unique_ptr<Layer> make_select_rows(SpecMap& keys) { return std::make_unique<SelectRows>(keys); }

}  // namespace tbdsim
