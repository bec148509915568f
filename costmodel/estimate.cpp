#include "costmodel/estimate.h"

#include <algorithm>

namespace tbdsim {

KernelCost estimate(const Kernel& kernel, double batch, const GpuSpec& gpu, const Profile& profile) {
  const Efficiency<double>& efficiency = profile.kinds[index_of(kernel.kind)];
  const double bytes = kernel.read_bytes.at(batch) + kernel.written_bytes.at(batch);
  // Transfers pass the bus; efficiencies are of the memory's bandwidth or of what the bus achieves.
  const BytesPerSecond bandwidth =
      kernel.kind == KernelKind::transfer ? achievable(gpu.bus) : gpu.memory_bandwidth;
  const RooflineTime<double> time = roofline(kernel.flops.at(batch), rate_of(gpu, kernel.math).peak.si(),
                                             bytes, bandwidth.si(), efficiency);
  KernelCost cost{.compute = Seconds(time.compute_s),
                  .memory = Seconds(time.memory_s),
                  .overhead = Seconds(efficiency.overhead_s),
                  .total = Seconds(time.total_s)};
  cost.bound = time.compute_s > time.memory_s ? Bound::compute : Bound::memory;
  if (efficiency.overhead_s > std::max(time.compute_s, time.memory_s)) cost.bound = Bound::overhead;
  return cost;
}

std::vector<KernelCost> estimate(const TrainingStep& step, double batch, const GpuSpec& gpu,
                                 const Profile& profile) {
  std::vector<KernelCost> costs;
  costs.reserve(step.kernels.size());
  for (const Kernel& kernel : step.kernels) costs.push_back(estimate(kernel, batch, gpu, profile));
  return costs;
}

}  // namespace tbdsim
