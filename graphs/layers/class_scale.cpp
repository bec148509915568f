// class_scale: y = gamma[c] * x + beta[c] for each channel of an image, with rows gamma[c], beta[c] of two
// tables for the sample's class c: behind a batch norm without scale and shift, a conditional batch norm
// (Dumoulin et al., ICLR 2017).
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostClasses = 10'000'000;

class ClassScale : public Layer {
 public:
  explicit ClassScale(SpecMap& keys) : classes_(keys.at("classes").count(1, kMostClasses)) {}

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    return image_input(inputs);
  }
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t rows = checked_multiply(classes_, image_input(inputs).dims[0]);
    return {{.name = "gamma", .elements = rows, .gradient_rows = factors(inputs[0])},
            {.name = "beta", .elements = rows, .gradient_rows = factors(inputs[0])}};
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    const Size rows = factors(site.output) * kFp32Bytes;
    gather(site, Phase::forward, rows, kernels);
    for (const std::string_view op : {"mul", "add"})
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::forward, op, site.output, 1, x + rows, x));
  }

  // dx = gamma dy; the rows' gradients are sums over the pixels of dy x and of dy.
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    const Size rows = factors(site.output) * kFp32Bytes;
    if (site.weight_gradient) {
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::backward_weights, "mul", site.output, 1, x * 2, x));
      kernels.back().scratch_bytes = x;
      for (int table = 0; table < 2; ++table)
        kernels.push_back(
            memory_kernel(KernelKind::reduction, Phase::backward_weights, "sum", site.output, 1, x, rows));
      gather(site, Phase::backward_weights, rows, kernels);
    }
    if (site.input_gradient)
      kernels.push_back(
          memory_kernel(KernelKind::elementwise, Phase::backward_data, "mul", site.output, 1, x + rows, x));
  }

  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.weight_gradient};
  }

 private:
  static Size factors(const Shape& image) { return image.rows * image.dims[0]; }
  // Rows of both tables, or sums into them.
  static void gather(const LayerContext& site, Phase phase, Size rows, std::vector<Kernel>& kernels) {
    const Shape looked_up{site.output.rows, {site.output.dims[0]}};
    for (int table = 0; table < 2; ++table) {
      kernels.push_back(memory_kernel(KernelKind::gather, phase, "embedding", looked_up, 0, rows, rows));
      kernels.back().shape = position_matrix(looked_up);
    }
  }

  std::int64_t classes_;
};

}  // namespace

std::unique_ptr<Layer> make_class_scale(SpecMap& keys) { return std::make_unique<ClassScale>(keys); }

}  // namespace tbdsim
