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
#include "simulate/framework/sync_method.h"
#include "simulate/workload/spec_cache.h"

namespace tbdsim {

// Who trains together. Machines are alike, and so are their GPUs.
struct Cluster {
  int gpus = 1;  // in each machine
  int machines = 1;
  std::string machine{};  // of the catalogue, or a path; empty: one of which only `network` is known
  // Of a machine: which of its networks, another one, or a rate ("25 Gbit/s"). Else as synthesize_machine's
  // word.
  std::string network{};
  std::string method{};       // empty: the framework's
  double gradient_bytes = 0;  // of one element as it travels; 0: as the precision stores it
  double compression = 1;     // of what is left after that, sent

  [[nodiscard]] std::int64_t ranks() const { return static_cast<std::int64_t>(gpus) * machines; }
};

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

// The cluster's machine, as the library's changes have it. Throws UsageError or SpecError.
[[nodiscard]] MachineSpec machine_for(const Cluster& cluster, const GpuSpec& gpu, SpecCache& specs);

// A word for `network` that means one between machines, not how GPUs of one machine are joined.
[[nodiscard]] bool joins_machines(const std::string& word, const Catalog& catalog);

// Throws UsageError for a word that is no network, nor how GPUs of one machine may be joined.
void require_network(const std::string& network, const Catalog& catalog);

// Throws UsageError for fewer than one GPU or machine, more than ten million GPUs, or a compression or width
// of gradients out of range.
void require_cluster(const Cluster& cluster);

// Throws UsageError or SpecError: more GPUs than a machine has, more machines than there are, no network
// between them, a method that does not reach several machines.
[[nodiscard]] SyncPlan plan_sync(const Cluster& cluster, const GpuSpec& gpu, const Framework& framework,
                                 SpecCache& specs);

}  // namespace tbdsim
