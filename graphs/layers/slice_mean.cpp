// slice_mean: the mean over 2x2 pixels as a sum of four slices of stride 2, divided by four: what TensorFlow
// programs write where they do not use a pooling.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kSlices = 4;

class SliceMean : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    if (in.dims[1] % 2 != 0 || in.dims[2] % 2 != 0) {
      throw ShapeMismatch("input has shape " + to_text(in) + "; expected an even height and width");
    }
    return {in.rows, {in.dims[0], in.dims[1] / 2, in.dims[2] / 2}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    mean(site, how, Phase::forward, kernels);
  }

  // Each slice's gradient is a zeroed image with the slice put in; the four are added up.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Shape& in = site.inputs[0];
    const Size x = stored_bytes(in, how.precision);
    const Size y = stored_bytes(site.output, how.precision);
    const auto add = [&](std::string_view op, const Shape& shape, std::int64_t flops, Size read,
                         Size written) {
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::backward_data, op, shape, flops, read, written));
    };
    add("div", site.output, 1, y, y);
    add("fill", in, 0, {}, x);
    kernels.back().repeat = kSlices;
    add("slice", site.output, 0, y, y);
    kernels.back().repeat = kSlices;
    add("add_n", in, kSlices - 1, x * kSlices, x);
    kernels.back().scratch_bytes = x * kSlices;
  }

  // The layer is linear: the gradient of dX is passed on as X is.
  void double_backward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const override {
    mean(site, how, Phase::backward_data, kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }

 private:
  static void mean(const LayerContext& site, const LoweringContext& how, Phase phase,
                   std::vector<Kernel>& kernels) {
    const Size y = stored_bytes(site.output, how.precision);
    const auto add = [&](std::string_view op, std::int64_t flops, Size read) {
      kernels.push_back(memory_kernel(KernelKind::elementwise, phase, op, site.output, flops, read, y));
    };
    add("slice", 0, y);
    kernels.back().repeat = kSlices;
    add("add_n", kSlices - 1, y * kSlices);
    kernels.back().scratch_bytes = y * kSlices;
    add("div", 1, y);
  }
};

}  // namespace

std::unique_ptr<Layer> make_slice_mean(SpecMap&) { return std::make_unique<SliceMean>(); }

}  // namespace tbdsim
