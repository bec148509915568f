// rescale: bytes or whole numbers become floating-point numbers and are brought into another range, each
// operation a kernel: 2 * (x / 255 - 0.5) is a cast and three more. `gathered: true`: positions of
// {positions, features} are rows of a table that the GPU, or the GPUs of a machine between them, hold, and
// are gathered before.
#include "graphs/layers/layer_types.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kMostBytes = 8;
constexpr std::int64_t kMostOperations = 16;

class Rescale : public Layer {
 public:
  explicit Rescale(SpecMap& keys)
      : element_bytes_(keys.at("element_bytes").count(1, kMostBytes)),
        operations_(keys.at("operations").count(0, kMostOperations)) {
    if (const auto gathered = keys.find("gathered")) gathered_ = gathered->flag();
  }

  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    if (gathered_ && inputs[0].dims.size() != 2)
      throw ShapeMismatch("input has shape " + to_text(inputs[0]) + "; expected positions x features");
    return inputs[0];
  }

  void forward(const LayerContext& site, const LoweringContext& how,
               std::vector<Kernel>& kernels) const override {
    const Size x = stored_bytes(site.output, how.precision);
    if (gathered_) {
      const Size rows = elements(site.output) * element_bytes_;
      kernels.push_back(memory_kernel(KernelKind::gather, Phase::forward, "gather", site.output, 0,
                                      rows + positions(site.output) * kIndexBytes, rows));
      kernels.back().shape = position_matrix(site.output);
    }
    kernels.push_back(memory_kernel(KernelKind::elementwise, Phase::forward, "cast", site.output, 1,
                                    elements(site.output) * element_bytes_, x));
    if (operations_ == 0) return;
    kernels.push_back(
        memory_kernel(KernelKind::elementwise, Phase::forward, "rescale", site.output, 1, x, x));
    kernels.back().repeat = operations_;
  }
  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool differentiable() const override { return false; }

 private:
  std::int64_t element_bytes_;
  std::int64_t operations_;
  bool gathered_ = false;
};

}  // namespace

std::unique_ptr<Layer> make_rescale(SpecMap& keys) { return std::make_unique<Rescale>(keys); }

}  // namespace tbdsim
