// The machine that a cluster is made of: one of the catalogue, or a synthetic one of which a word is known.
#pragma once

#include <string>

#include "hwspecs/machine_spec.h"
#include "simulate/communication/cluster.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// The cluster's machine with `gpu` in its slots, its network as the cluster has it, and the changes of
// `specs`. Throws UsageError or SpecError.
[[nodiscard]] MachineSpec machine_for(const Cluster& cluster, const GpuSpec& gpu, SpecCache& specs);

// The network, or the way in which the GPUs of one machine are joined, that machine_for() takes where the
// cluster says none; empty where it says one, for one GPU, and within a machine that has a file. Throws as
// machine_for().
[[nodiscard]] std::string assumed_network(const Cluster& cluster, const GpuSpec& gpu, SpecCache& specs);

// True if the word is a network between machines (a link of networks, a path, a rate), not a word for how
// GPUs of one machine are joined.
[[nodiscard]] bool joins_machines(const std::string& word, const Catalog& catalog);

// Throws UsageError for a word that is neither.
void require_network(const std::string& network, const Catalog& catalog);

}  // namespace tbdsim
