// spectral_norm: passes its input through to the convolution or product behind it, whose weights W {inputs x
// kernel^2, filters} it divides by their largest singular value (Miyato et al., ICLR 2018), found by one step
// of the power iteration: v = W u, u = W' v, both normalised, sigma = v' W u. Backward, the weights' gradient
// loses its part along u v'. Work is the same for every batch.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostFilters = 10'000'000;
constexpr std::int64_t kLargestKernel = 64;
constexpr std::int64_t kSmallOperators = 8;  // norms, square roots and divisions of two vectors; sigma

class SpectralNorm : public Layer {
 public:
  explicit SpectralNorm(SpecMap& keys) : filters_(keys.at("filters").count(1, kMostFilters)) {
    if (const auto kernel = keys.find("kernel")) kernel_ = kernel->count(1, kLargestKernel);
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (inputs[0].dims.empty()) throw ShapeMismatch("input has no dimensions; expected channels first");
    return inputs[0];
  }
  // The vector u, which every iteration improves.
  [[nodiscard]] std::vector<ParameterTensor> parameters(std::span<const Shape>) const override {
    return {{"singular_vector", filters_, false}};
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const std::int64_t rows = checked_multiply(site.inputs[0].dims[0], kernel_ * kernel_);
    product(rows, 1, filters_, how, Phase::forward, kernels);
    product(filters_, 1, rows, how, Phase::forward, kernels);
    const Size word = fixed_size(kFp32Bytes);
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "normalize",
                                    {fixed_size(rows), {}}, 2, word * rows, word * rows));
    kernels.back().repeat = kSmallOperators;
    over_weights("div", rows, Phase::forward, 1, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext&,
                std::vector<Kernel>& kernels) const override {
    const std::int64_t rows = checked_multiply(site.inputs[0].dims[0], kernel_ * kernel_);
    over_weights("mul", rows, Phase::backward_weights, 2, kernels);
    over_weights("sub", rows, Phase::backward_weights, 2, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool passes_gradient_through() const override { return true; }
  [[nodiscard]] bool is_view(const Lowering&) const override { return true; }

 private:
  static void product(std::int64_t m, std::int64_t n, std::int64_t k, const LoweringContext& how, Phase phase,
                      std::vector<Kernel>& kernels) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.op = "power_iteration";
    kernel.phase = phase;
    kernel.math = how.precision.math;
    kernel.macs = fixed_size(checked_multiply(checked_multiply(m, n), k));
    kernel.flops = kernel.macs * 2;
    kernel.read_bytes = fixed_size(checked_multiply(checked_multiply(m, k) + k, kFp32Bytes));
    kernel.written_bytes = fixed_size(m * kFp32Bytes);
    kernel.shape = GemmShape{.m = fixed_size(m), .n = fixed_size(n), .k = fixed_size(k)};
    kernels.push_back(kernel);
  }
  void over_weights(std::string_view op, std::int64_t rows, Phase phase, std::int64_t reads,
                    std::vector<Kernel>& kernels) const {
    const Size words = fixed_size(checked_multiply(rows, filters_));
    kernels.push_back(memory_kernel(KernelKind::elementwise, phase, op, {words, {}}, 1,
                                    words * (reads * kFp32Bytes), words * kFp32Bytes));
  }

  std::int64_t filters_;
  std::int64_t kernel_ = 1;
};

}  // namespace

std::unique_ptr<Layer> make_spectral_norm(SpecMap& keys) { return std::make_unique<SpectralNorm>(keys); }

}  // namespace tbdsim
