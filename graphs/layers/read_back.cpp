// read_back: the mean of a loss over samples and positions, for which the host synchronizes, to print it or
// to check for overflow.
#include "graphs/layers/layer_types.h"
#include "graphs/layers/transfer.h"

namespace tbdsim {
namespace {

class ReadBack : public Layer {
 public:
  [[nodiscard]] Shape output_shape(std::span<const Shape> inputs) const override {
    require_inputs(inputs, 1);
    (void)last_dimension(inputs[0]);
    return {fixed_size(1), {1}};
  }

  void forward(const LayerContext& site, const LoweringContext&,
               std::vector<Kernel>& kernels) const override {
    const Shape losses{positions(site.inputs[0]), {}};
    const Size number = fixed_size(kFp32Bytes);
    kernels.push_back(memory_kernel(KernelKind::reduction, Phase::forward, "sum", losses, 1,
                                    elements(losses) * kFp32Bytes, number));
    kernels.push_back(device_to_host(elements(site.output)));
  }

  void backward(const LayerContext&, const LoweringContext&, std::vector<Kernel>&) const override {}
  [[nodiscard]] BackwardNeeds backward_needs(const LayerContext&, const LoweringContext&) const override {
    return {};
  }
  [[nodiscard]] bool differentiable() const override { return false; }
  [[nodiscard]] bool is_loss() const override { return true; }
};

}  // namespace

std::unique_ptr<Layer> make_read_back(SpecMap&) { return std::make_unique<ReadBack>(); }

}  // namespace tbdsim
