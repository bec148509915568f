// How a cluster synchronizes gradients: the stages through which every message (a bucket of gradients) goes,
// one after another, each of which handles one message at a time.
//
//   method                     stages
//   all-reduce                 all_reduce, or reduce_scatter and all_gather where ranks shard the update
//   servers in host memory     push (GPUs to host), sum (host),
//                              send and receive (network), pull
//   servers on GPUs            push, pull (GPUs to GPUs); each array lies whole on one of them
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
  // Host-side all-reduce only: the part of it, sums and steps without transfer, for which the communication
  // thread is busy and does not look for gradients. It does not depend on the network's rate, so that a
  // faster network never makes an iteration longer.
  std::optional<AllReduceRanks> sender_busy{};
  Seconds message;        // added for every message
  BytesPerSecond rate{};  // of a stage that is no all-reduce
  // Where arrays lie whole on one GPU each: the rate at which all gradients would move if each server's links
  // carried an equal part alone; 0: servers are no limit.
  BytesPerSecond one_server{};
  bool on_gpu = false;        // by kernels, which queue behind those of the model and occupy SMs
  bool in_host = false;       // by a host thread: no kernel waits for it
  bool next_forward = false;  // brings parameters that the next forward pass needs
  bool after_all = false;     // starts when all messages have passed the stage before

  // For a message of so many bytes. `fullest`: bytes of the fullest server over the mean of all.
  [[nodiscard]] Seconds time(Bytes bytes, double fullest = 1) const;
  // The part of it, from 0 to 1, in which data cross the links as fast as these allow.
  [[nodiscard]] double flowing(Bytes bytes, double fullest = 1) const;
};

// SMs of a collective while it starts, takes its steps and fills its pipelines: NCCL gives small messages few
// channels (NVIDIA/nccl, src/enqueue.cc: fewer while a channel's share is below 32 KiB), a ring has two.
inline constexpr double kSmsOfStart = 2;

// The load of a link.
struct LinkUse {
  std::string name;
  BytesPerSecond capacity;
  double bytes_per_byte = 0;  // bytes over the link for each byte of gradients
};

struct SyncPlan {
  const SyncMethod* method = nullptr;
  Cluster cluster;
  std::string machine;  // its title
  double cores = 0;     // CPU cores for each GPU of a machine; 0: no limit
  std::vector<SyncStage> stages;
  Bytes bucket, first_bucket;    // sizes; 0: each gradient is a message
  Seconds cycle;                 // period of the communication thread; 0: a bucket is sent when it is full
  bool overlaps = true;          // with the backward pass
  double sms = 0;                // streaming multiprocessors that its kernels occupy while data flow
  double interference = 0;       // part of the synchronization's time by which concurrent kernels take longer
  bool cut_tables = false;       // SyncDefaults::cut_tables
  bool single_ring = false;      // NCCL 1
  bool one_interpreter = false;  // one process makes the targets of all GPUs of a machine
  std::vector<LinkUse> links;

  [[nodiscard]] std::int64_t ranks() const { return cluster.ranks(); }
};

// The plan for a cluster of such machines. Throws UsageError: more GPUs than a machine has, more machines
// than there are, no network between them, a method that works within one machine only.
[[nodiscard]] SyncPlan plan_sync(const Cluster& cluster, const GpuSpec& gpu, const Framework& framework,
                                 const MachineSpec& machine);

}  // namespace tbdsim
