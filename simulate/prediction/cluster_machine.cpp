#include "simulate/prediction/cluster_machine.h"

#include "hwspecs/synthetic_machine.h"

namespace tbdsim {

bool joins_machines(const std::string& word, const Catalog& catalog) {
  if (is_path(word)) return true;
  if (is_rate(word)) return !catalog.contains(Kind::machine, word);
  return kind_of_link(word, catalog) == LinkKind::network;
}

MachineSpec machine_for(const Cluster& cluster, const GpuSpec& gpu, SpecCache& specs) {
  const Catalog& catalog = specs.catalog();
  const SpecChanges& changes = specs.changes();
  if (cluster.machine.empty()) {
    const bool network = joins_machines(cluster.network, catalog);
    MachineSpec machine =
        synthesize_machine(gpu, cluster.gpus, network ? "" : cluster.network, catalog, changes);
    if (network) machine.networks = {{.link = network_named(cluster.network, catalog, changes), .below = {}}};
    return machine;
  }
  MachineSpec machine = *specs.machine(cluster.machine);
  if (!gpu.nvlink) machine.nvlink.reset();  // other cards in the same machine
  if (cluster.network.empty()) return machine;
  for (const Network& network : machine.networks) {
    if (network.link.name != cluster.network) continue;
    machine.networks = {Network(network)};
    return machine;
  }
  machine.networks = {{.link = network_named(cluster.network, catalog, changes), .below = {}}};
  return machine;
}

double cores_alone(const Cluster& cluster, const GpuSpec& gpu, SpecCache& specs) {
  if (cluster.machine.empty() || cluster.ranks() > 1) return 0;
  const MachineSpec machine = machine_for(cluster, gpu, specs);
  return static_cast<double>(machine.sockets) * static_cast<double>(machine.cpu.core_count);
}

void require_network(const std::string& network, const Catalog& catalog) {
  if (joins_machines(network, catalog)) {
    (void)network_named(network, catalog);
  } else {
    require_interconnect(network, catalog);
  }
}

}  // namespace tbdsim
