// layer_scale: y = gamma * x with a trained factor for each feature of a position, for each channel of an
// image, or one for all (Touvron et al., "Going deeper with image transformers", ICCV 2021).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

enum class Axes { features, image, all };

class LayerScale : public Layer {
 public:
  explicit LayerScale(SpecMap& keys) {
    if (const auto axes = keys.find("axes"))
      axes_ = static_cast<Axes>(axes->one_of({"features", "image", "all"}));
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (axes_ == Axes::image) return image_input(inputs);
    (void)last_dimension(inputs[0]);
    return inputs[0];
  }
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    return {{"gamma", channels(inputs[0])}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    product(site, Phase::forward, x + gamma_bytes(site), x, kernels);
  }

  // dx = gamma * dy; gamma's gradient is dy * x, summed over everything else.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    if (site.weight_gradient) {
      product(site, Phase::backward_weights, x * 2, x, kernels);
      kernels.back().scratch_bytes = x;
      kernels.push_back(memory_kernel(KernelKind::reduction, Phase::backward_weights, "sum", site.output, 1,
                                      x, gamma_bytes(site)));
      kernels.back().scratch_bytes = x;
    }
    if (site.input_gradient) product(site, Phase::backward_data, x + gamma_bytes(site), x, kernels);
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.weight_gradient};
  }

 private:
  [[nodiscard]] std::int64_t channels(const Shape& x) const {
    if (axes_ == Axes::all) return 1;
    return axes_ == Axes::image ? x.dims[0] : last_dimension(x);
  }
  [[nodiscard]] Size gamma_bytes(const LayerContext& site) const {
    return fixed_size(checked_multiply(channels(site.output), kFp32Bytes));
  }
  static void product(const LayerContext& site, Phase phase, Size read, Size written,
                      std::vector<Kernel>& kernels) {
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, "mul", site.output, 1, read, written));
  }

  Axes axes_ = Axes::features;
};

}  // namespace

std::unique_ptr<Layer> make_layer_scale(SpecMap& keys) { return std::make_unique<LayerScale>(keys); }

}  // namespace tbdsim
