// max_pool, avg_pool: maximum or mean over a sliding window; global_avg_pool: mean over all pixels.
#include <optional>

#include "graphs/layers/layer_types.h"
#include "graphs/layers/window.h"

namespace tbdsim {
namespace {

class Pool : public Layer {
 public:
  Pool(std::string_view op, bool keeps_tensors, std::optional<Window> window)
      : op_(op), keeps_tensors_(keeps_tensors), window_(window) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    const Shape& in = image_input(inputs);
    if (!window_) return {in.rows, {in.dims[0], 1, 1}};
    return {in.rows,
            {in.dims[0], window_->height.positions(in.dims[1], "height"),
             window_->width.positions(in.dims[2], "width")}};
  }

  // One operation for each pixel of each window.
  void forward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    kernels.push_back(memory_kernel(KernelKind::pooling, Phase::forward, op_, site.output, window_area(site),
                                    stored_bytes(site.inputs[0], how.precision),
                                    stored_bytes(site.output, how.precision)));
    kernels.back().shape = pool_shape(site);
  }

  // A maximum looks for its place again in x and y; a mean only spreads dy.
  void backward(const LayerSite& site, const Expansion& how, std::vector<Kernel>& kernels) const override {
    if (!site.input_gradient) return;
    const Size x = stored_bytes(site.inputs[0], how.precision);
    const Size y = stored_bytes(site.output, how.precision);
    kernels.push_back(memory_kernel(KernelKind::pooling, Phase::backward_data, op_, site.output,
                                    window_area(site), keeps_tensors_ ? x + y * 2 : y, x));
    kernels.back().shape = pool_shape(site);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerSite& site, const Expansion&) const override {
    const bool keeps = keeps_tensors_ && site.input_gradient;
    return {.inputs = keeps, .output = keeps};
  }

 private:
  [[nodiscard]] PoolShape pool_shape(const LayerSite& site) const {
    const ImageShape in = image_shape(site.inputs[0]);
    if (!window_) return {.input = in, .kernel_height = in.height, .kernel_width = in.width};
    return {.input = in,
            .kernel_height = window_->height.kernel,
            .kernel_width = window_->width.kernel,
            .stride_height = window_->height.stride,
            .stride_width = window_->width.stride,
            .pad_height = window_->height.pad_before(in.height),
            .pad_width = window_->width.pad_before(in.width)};
  }

  [[nodiscard]] std::int64_t window_area(const LayerSite& site) const {
    const PoolShape pool = pool_shape(site);
    return checked_multiply(pool.kernel_height, pool.kernel_width);
  }

  std::string_view op_;
  bool keeps_tensors_;
  std::optional<Window> window_;  // empty: all pixels
};

}  // namespace

std::unique_ptr<Layer> make_max_pool(SpecMap& keys) {
  return std::make_unique<Pool>("max_pool", true, read_window(keys));
}
std::unique_ptr<Layer> make_avg_pool(SpecMap& keys) {
  return std::make_unique<Pool>("avg_pool", false, read_window(keys));
}
std::unique_ptr<Layer> make_global_avg_pool(SpecMap&) {
  return std::make_unique<Pool>("avg_pool", false, std::nullopt);
}

}  // namespace tbdsim
