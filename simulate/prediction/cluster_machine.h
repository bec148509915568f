// The machine of a cluster: one of the catalogue, or one synthesized from its network.
#pragma once

#include <string>

#include "hwspecs/machine_spec.h"
#include "simulate/communication/cluster.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// The cluster's machine with `gpu` in its slots, its network as the cluster has it, and the changes of
// `specs`. Throws UsageError or SpecError.
[[nodiscard]] MachineSpec machine_for(const Cluster& cluster, const GpuSpec& gpu, SpecCache& specs);

// CPU cores of the machine of a cluster of one GPU; 0: no machine is named, or there are several GPUs, whose
// plan has them (SyncPlan::cores). Throws as machine_for().
[[nodiscard]] double cores_alone(const Cluster& cluster, const GpuSpec& gpu, SpecCache& specs);

// True if the word is a network between machines (a link of networks, a path, a rate), not a word for how
// GPUs of one machine are joined.
[[nodiscard]] bool joins_machines(const std::string& word, const Catalog& catalog);

// Throws UsageError for a word that is neither.
void require_network(const std::string& network, const Catalog& catalog);

}  // namespace tbdsim
