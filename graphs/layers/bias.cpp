#include "graphs/layers/bias.h"

#include "hwspecs/base/spec_reader.h"

namespace tbdsim {

bool has_bias(SpecMap& keys, bool unless_given) {
  const auto bias = keys.find("bias");
  return bias ? bias->flag() : unless_given;
}

Access broadcast_access(const Lowering& lowering) {
  return lowering.aten_kernels ? Access::elements : Access::vectors;
}

Kernel bias_add(const LayerContext& site, const LoweringContext& how, const MatrixShape& shape) {
  const Size y = stored_bytes(site.output, how.precision);
  Kernel kernel = memory_kernel(KernelKind::elementwise, Phase::forward, "bias_add", site.output, 1, y, y);
  kernel.shape = shape;
  kernel.access = broadcast_access(how.lowering);
  return kernel;
}

Kernel bias_gradient(const LayerContext& site, const Precision& precision, std::int64_t biases,
                     const MatrixShape& shape) {
  Kernel kernel =
      memory_kernel(KernelKind::reduction, Phase::backward_weights, "bias_gradient", site.output, 1,
                    stored_bytes(site.output, precision), fixed_size(biases * precision.storage_bytes));
  kernel.shape = shape;
  return kernel;
}

}  // namespace tbdsim
