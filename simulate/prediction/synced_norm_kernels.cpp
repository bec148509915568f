#include "simulate/prediction/synced_norm_kernels.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "costmodel/kernel_estimate.h"
#include "graphs/aten_batch_norm.h"

namespace tbdsim {

namespace {

bool is_trained_norm(const Iteration& iteration, const Kernel& kernel) {
  if (kernel.layer < 0) return false;
  const LayerSummary& layer = iteration.step->layers[static_cast<std::size_t>(kernel.layer)];
  return layer.type == "batch_norm" && layer.trained_parameters > 0;
}

}  // namespace

Seconds synced_norm_kernels(const Prediction& p, const Iteration& iteration) {
  if (!iteration.step->synced_norms || !p.framework->lowering.aten_kernels) return {};
  const auto batch = static_cast<double>(iteration.batch);
  Seconds longer;
  for (const auto& [k, times, squares] : iteration.runs) {
    const Kernel& library = iteration.step->kernels[k];
    const auto* images = std::get_if<ImageShape>(&library.shape);
    if (library.kind != KernelKind::batch_norm || images == nullptr || !is_trained_norm(iteration, library))
      continue;
    const AtenBatchNorm norm{.images = *images,
                             .elements = images->images * (images->channels * images->height * images->width),
                             .element_bytes = p.precision->storage_bytes,
                             .channels_last = p.framework->lowering.layout == Layout::nhwc};
    // Where the step has PyTorch's own norms, only the backward pass of NCHW differs.
    if (is_aten_norm(library) && (library.phase == Phase::forward || norm.channels_last)) continue;
    const std::vector<Kernel> own =
        library.phase == Phase::forward
            ? forward_kernels(norm)
            : synced_backward_kernels(norm, library.phase == Phase::backward_data);
    Seconds time;
    for (const Kernel& kernel : own) {
      KernelCost cost;
      estimate_kernel(kernel, batch, *p.calibration, p.factors[index_of(kernel.kind)], Seconds(0), cost);
      time += cost.total;
    }
    longer += (time - iteration.costs[k].total) * static_cast<double>(times);
  }
  return std::max(Seconds(0), longer);
}

}  // namespace tbdsim
