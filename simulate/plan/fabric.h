// The links of a cluster's GPUs, as collectives see them: domains of GPUs that NVLink or PCI Express joins,
// and a network between them.
#pragma once

#include <cstdint>

#include "costmodel/communication/collective.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"

namespace tbdsim {

struct Fabric {
  std::int64_t domain = 1;  // GPUs of a machine, or of a rack that NVLink joins
  BytesPerSecond within;    // as CommGroup
  BytesPerSecond switched;
  CollectiveCost cost;
  double channels = 0;     // of NCCL's collectives within the domain
  BytesPerSecond network;  // of each GPU, out of its domain; 0: there is none
  // A fat tree: groups that reach beyond the GPUs below one leaf switch have this part less. 0 GPUs: all
  // below one.
  std::int64_t leaf = 0;
  double oversubscription = 1;
};

// The fabric of `gpus` GPUs in machines of this sort, whose first network joins them. Throws UsageError where
// there are more GPUs than one machine has and no network.
[[nodiscard]] Fabric fabric_of(const MachineSpec& machine, const GpuSpec& gpu, std::int64_t gpus);

// Bytes of NCCL's buffers on one rank of a communicator: for each channel and each connection that it
// receives from (its ring's, its tree's parent and child) one of every protocol (NVIDIA/nccl v2.10.3,
// src/init.cc, computeBuffSizes; src/transport/p2p.cc). 0 for one rank.
[[nodiscard]] Bytes buffers_of(const Fabric& fabric, const CommGroup& group);

// The communicator of `ranks` ranks that stand `stride` GPUs apart, while all others like it work too.
[[nodiscard]] CommGroup group_of(const Fabric& fabric, std::int64_t ranks, std::int64_t stride);

}  // namespace tbdsim
