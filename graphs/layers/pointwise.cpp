// pointwise: any function of each element without a layer of its own, as an exponential; its gradient reads
// that of the output and the input.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostOperations = 1'000;

class Pointwise : public Layer {
 public:
  explicit Pointwise(SpecMap& keys) {
    if (const auto operations = keys.find("operations")) flops_ = operations->count(1, kMostOperations);
  }
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    return inputs[0];
  }
  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    run(site, how, Phase::forward, 1, kernels);
  }
  void backward(const LayerContext& site, const LoweringContext& how,
                std::vector<Kernel>& kernels) const override {
    if (site.input_gradient) run(site, how, Phase::backward_data, 2, kernels);
  }
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext& site,
                                             const LoweringContext&) const override {
    return {.inputs = site.input_gradient};
  }

 private:
  void run(const LayerContext& site, const LoweringContext& how, Phase phase, std::int64_t reads,
           std::vector<Kernel>& kernels) const {
    const Size x = stored_bytes(site.output, how.precision);
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, phase, "pointwise", site.output, flops_, x * reads, x));
  }

  std::int64_t flops_ = 1;
};

}  // namespace

std::unique_ptr<Layer> make_pointwise(SpecMap& keys) { return std::make_unique<Pointwise>(keys); }

}  // namespace tbdsim
