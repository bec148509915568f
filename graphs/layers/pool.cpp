// max_pool, avg_pool: maximum or mean over a sliding window; adaptive_avg_pool: mean over as many windows as
// give outputs x outputs pixels, so that images of any size fit the layers behind; global_avg_pool: over all
// pixels.
#include <algorithm>
#include <optional>

#include "graphs/layers/layer_types.h"
#include "graphs/layers/window.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostOutputs = 1'000'000;

// Windows of one size that cover the input, where PyTorch's differ by a pixel if it does not divide.
WindowAxis adaptive_axis(std::int64_t input, std::int64_t outputs) {
  const std::int64_t stride = outputs == 1 ? 1 : std::max<std::int64_t>(1, input / outputs);
  const std::int64_t kernel = std::max<std::int64_t>(1, input - (outputs - 1) * stride);
  return {.kernel = kernel, .stride = stride};
}

class Pool : public Layer {
 public:
  Pool(std::string_view op, bool keeps_tensors, const Window& window)
      : op_(op), keeps_tensors_(keeps_tensors), window_(window) {}
  Pool(std::string_view op, std::int64_t outputs) : op_(op), outputs_(outputs) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    if (!window_) return {in.rows, {in.dims[0], outputs_, outputs_}};
    return {in.rows,
            {in.dims[0], window_->height.positions(in.dims[1], "height"),
             window_->width.positions(in.dims[2], "width")}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    pool(site, how, Phase::forward, kernels);
  }

  // A maximum looks for its place again in x and y; a mean only spreads dy.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.inputs[0], how.precision);
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::pooling, Phase::backward_data, op_, site.output,
                                    window_area(site), keeps_tensors_ ? x + y * 2 : y, x));
    kernels.back().shape = pool_shape(site);
    mark(how, kernels.back());
  }

  // A mean is linear: the gradient of dX is pooled as X is. Frameworks ignore that dX does not depend on
  // X: its gradient is a tensor of zeros.
  void double_backward(const LayerContext& site, const LoweringContext& how,
                       std::vector<Kernel>& kernels) const override {
    if (keeps_tensors_) throw NoSecondOrder();
    pool(site, how, Phase::backward_data, kernels);
    const Shape& in = site.inputs[0];
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::backward_data, "fill", in, 0, {},
                                    stored_bytes(in, how.precision)));
  }
  [[nodiscard]] bool input_gradient_depends_on_input() const override { return true; }

  // PyTorch keeps the input of a mean, too, of which it needs the sizes alone
  // (tools/autograd/derivatives.yaml, avg_pool2d and _adaptive_avg_pool2d: self).
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext& how) const override {
    const bool searches = keeps_tensors_ && site.input_gradient;
    return {.inputs = searches || (how.lowering.aten_kernels && site.input_gradient), .output = searches};
  }

 private:
  // One operation for each pixel of each window.
  void pool(const LayerContext& site, const LoweringContext& how, Phase phase,
            std::vector<Kernel>& kernels) const {
    kernels.push_back(memory_kernel(KernelKind::pooling, phase, op_, site.output, window_area(site),
                                    stored_bytes(site.inputs[0], how.precision),
                                    stored_bytes(site.output, how.precision)));
    kernels.back().shape = pool_shape(site);
    mark(how, kernels.back());
  }

  // PyTorch's own kernels have a thread for each number, which goes over its window.
  static void mark(const LoweringContext& how, Kernel& kernel) {
    if (how.lowering.aten_kernels) kernel.access = Access::elements;
  }

  [[nodiscard]] PoolShape pool_shape(const LayerContext& site) const {
    const ImageShape in = image_shape(site.inputs[0]);
    const WindowAxis height = window_ ? window_->height : adaptive_axis(in.height, outputs_);
    const WindowAxis width = window_ ? window_->width : adaptive_axis(in.width, outputs_);
    return {.input = in,
            .kernel_height = height.kernel,
            .kernel_width = width.kernel,
            .stride_height = height.stride,
            .stride_width = width.stride,
            .pad_height = height.pad_before(in.height),
            .pad_width = width.pad_before(in.width)};
  }

  [[nodiscard]] std::int64_t window_area(const LayerContext& site) const {
    const PoolShape pool = pool_shape(site);
    return checked_multiply(pool.kernel_height, pool.kernel_width);
  }

  std::string_view op_;
  bool keeps_tensors_ = false;
  std::optional<Window> window_;  // empty: as many as there are outputs
  std::int64_t outputs_ = 1;      // in each direction
};

}  // namespace

std::unique_ptr<Layer> make_max_pool(SpecMap& keys) {
  return std::make_unique<Pool>("max_pool", true, read_window(keys));
}
std::unique_ptr<Layer> make_avg_pool(SpecMap& keys) {
  return std::make_unique<Pool>("avg_pool", false, read_window(keys));
}
std::unique_ptr<Layer> make_adaptive_avg_pool(SpecMap& keys) {
  return std::make_unique<Pool>("avg_pool", keys.at("outputs").count(1, kMostOutputs));
}
std::unique_ptr<Layer> make_global_avg_pool(SpecMap&) { return std::make_unique<Pool>("avg_pool", 1); }

}  // namespace tbdsim
