// Kernels that a compiler generates for several operators (graphs/captured/compile.h): they read their
// arguments and write their outputs once.
#include "graphs/captured/operators/operators.h"

namespace tbdsim {

// (tensors read, elements of the loop, operations)
void lower_fused(OperatorSite& site) {
  const bool reduces = site.entry.name == "tbdsim.fused_reduction";
  const auto inputs = site.tensors(0);
  const auto outputs = site.all_outputs();
  if (inputs.empty() && outputs.empty()) return;
  const CapturedTensor& typical = outputs.empty() ? *inputs.front() : *outputs.front();
  const KernelKind kind = site.phase == Phase::update ? KernelKind::update
                          : reduces                   ? KernelKind::reduction
                                                      : KernelKind::elementwise;
  Kernel kernel = bytes_kernel(kind, site.phase, reduces ? "fused_reduction" : "fused_pointwise",
                               site.size(1), 0, bytes_of(inputs), bytes_of(outputs), bytes_of(typical.dtype));
  kernel.flops = site.size(2);
  site.emit_for_parameter_of(typical, std::move(kernel));
}

}  // namespace tbdsim
