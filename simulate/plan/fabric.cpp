#include "simulate/plan/fabric.h"

#include <algorithm>

#include <fmt/format.h>

#include "costmodel/communication/topology.h"
#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

// NCCL doubles the rings that links allow, to 24 on a DGX A100; 32 are the most (src/include/devcomm.h).
constexpr double kChannelsOfLink = 2, kMostChannels = 32;

}  // namespace

Fabric fabric_of(const MachineSpec& machine, const GpuSpec& gpu, std::int64_t gpus) {
  Fabric fabric;
  fabric.domain = machine.gpus;
  const int used = static_cast<int>(std::min<std::int64_t>(gpus, machine.gpus));
  const Topology topology(machine, gpu, used);
  if (used > 1) {
    const Rings rings = topology.rings();
    fabric.within = rings.bandwidth;
    fabric.cost = rings.cost;
    fabric.channels = std::min(kMostChannels, kChannelsOfLink * rings.channels);
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

Bytes buffers_of(const Fabric& fabric, const CommGroup& group) {
  if (group.ranks() <= 1) return {};
  constexpr double kLowLatency = 8.0 * 512 * 8 * 16, kLowLatency128 = 120.0 * 640 * 8 * 8,
                   kSimple = 4 * kMebi;
  constexpr double kConnections = 3;
  // Adapters are few, and a rank has buffers to send from there, too; estimate.
  constexpr double kNetworkChannels = 4;
  const double channels = group.inner > 1 ? fabric.channels : 2 * kNetworkChannels;
  return Bytes((kLowLatency + kLowLatency128 + kSimple) * kConnections * channels);
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
