// What exchanging gradients costs on a machine or several: the stages that every message goes through, one
// after another, each handling one message at a time.
//
//   all-reduce                 all_reduce
//   servers in host memory     push (GPUs to host), sum (host),
//                              send and receive (network), pull
//   servers on GPUs            push, pull (GPUs to GPUs)
//   all-reduce in host memory  push, sum and send (processes,
//                              network), pull
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/communication/topology.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"
#include "simulate/communication/cluster.h"
#include "simulate/framework/framework_spec.h"
#include "simulate/framework/sync_method.h"

namespace tbdsim {

struct SyncStage {
  std::string name;
  std::optional<AllReduceRanks> all_reduce;
  // Of one in the host, what keeps the thread that sends from looking for gradients: the same with sums and
  // steps alone. What it takes together thus does not hang on the network, and a faster one is never slower.
  std::optional<AllReduceRanks> keeps{};
  Seconds message;            // of every message
  BytesPerSecond rate{};      // of its bytes, where it is no all-reduce
  bool on_gpu = false;        // kernels, which wait for room between those of the model and hold SMs
  bool in_host = false;       // by a thread of its own: no kernel waits for it
  bool next_forward = false;  // brings parameters that the next forward pass waits for
  bool after_all = false;     // starts once all messages passed the stage before

  [[nodiscard]] Seconds time(Bytes bytes) const;
};

// How busy a link is: bytes that pass for each byte of gradients.
struct LinkUse {
  std::string name;
  BytesPerSecond capacity;
  double bytes_per_byte = 0;
};

struct SyncPlan {
  const SyncMethod* method = nullptr;
  Cluster cluster;
  std::string machine;  // title
  double cores = 0;     // of a machine, for each of its GPUs; 0: enough
  std::vector<SyncStage> stages;
  Bytes bucket, first_bucket;
  Seconds cycle;  // of the thread that sends; 0: buckets are sent as they are full
  bool overlaps = true;
  double sms = 0;           // streaming multiprocessors its kernels hold
  double interference = 0;  // the framework's
  bool single_ring = false;
  std::vector<LinkUse> links;

  [[nodiscard]] std::int64_t ranks() const { return cluster.ranks(); }
};

// The plan for a cluster of such machines. Throws UsageError: more GPUs than a machine has, more machines
// than there are, no network between them, a method that does not reach several machines.
[[nodiscard]] SyncPlan plan_sync(const Cluster& cluster, const GpuSpec& gpu, const Framework& framework,
                                 const MachineSpec& machine);

}  // namespace tbdsim
