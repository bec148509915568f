#include "simulate/plan/fabric.h"

#include <algorithm>

#include <fmt/format.h>

#include "costmodel/communication/topology.h"
#include "hwspecs/base/error.h"

namespace tbdsim {

Fabric fabric_of(const MachineSpec& machine, const GpuSpec& gpu, std::int64_t gpus) {
  Fabric fabric;
  fabric.domain = machine.gpus;
  const int used = static_cast<int>(std::min<std::int64_t>(gpus, machine.gpus));
  const Topology topology(machine, gpu, used);
  if (used > 1) {
    const Rings rings = topology.rings();
    fabric.within = rings.bandwidth;
    fabric.cost = rings.cost;
  }
  if (machine.nvlink && machine.nvlink->to_switch > 0)
    fabric.switched = machine.nvlink->link.bandwidth * static_cast<double>(machine.nvlink->to_switch);
  if (machine.networks.empty()) {
    if (gpus <= machine.gpus) return fabric;
    throw UsageError(fmt::format("{} GPUs are more than the {} of {}, which no network joins to others", gpus,
                                 machine.gpus, machine.name));
  }
  const Network& network = machine.networks.front();
  const auto cards = static_cast<double>(std::max<std::size_t>(1, network.below.size()));
  fabric.network =
      std::min(achievable(network.link) * (cards / static_cast<double>(machine.gpus)), topology.slot_rate());
  return fabric;
}

CommGroup group_of(const Fabric& fabric, std::int64_t ranks, std::int64_t stride) {
  std::int64_t inner = std::clamp<std::int64_t>(fabric.domain / stride, 1, ranks);
  while (ranks % inner != 0) --inner;
  // Ranks stand in a row: the last is (ranks - 1) x stride GPUs after the first.
  const bool beyond_leaf = fabric.leaf > 0 && (ranks - 1) * stride >= fabric.leaf;
  return {.inner = inner,
          .outer = ranks / inner,
          .within = fabric.within,
          .switched = fabric.switched,
          .network = beyond_leaf ? fabric.network * (1 / fabric.oversubscription) : fabric.network,
          .cost = fabric.cost};
}

}  // namespace tbdsim
