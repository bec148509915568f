// The ways in which replicas of a model exchange their gradients, as a table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tbdsim {

class SpecNode;

// Where sums are made.
enum class ReductionSite {
  ranks,        // by all-reduce
  host_ranks,   // the same, by processes in host memory
  host_server,  // by servers in host memory, one in each machine, each with a share of the parameters
  gpu_servers,  // each GPU has a share
  first_gpu,    // of the machine
};

// How messages leave a machine.
enum class Transport { rdma, tcp, rpc };

struct SyncMethod {
  std::string_view name;
  std::string_view description;
  ReductionSite sum = ReductionSite::ranks;
  Transport transport = Transport::rdma;
  bool overlaps = true;         // with the backward pass
  bool next_iteration = false;  // new parameters are fetched as the next iteration needs them
  bool keyed = false;           // MXNet's rule: arrays below 1e6 elements go whole to one server
  bool locally_on_gpu = false;  // servers get one sum from each machine, made on its GPUs
  bool shards_update = false;   // each rank updates its share, then all gather the parameters (ZeRO-1)
  bool asynchronous = false;    // nobody waits for others
};

[[nodiscard]] std::span<const SyncMethod> exchange_methods();

// Throws UsageError with "did you mean".
[[nodiscard]] const SyncMethod& find_sync_method(std::string_view name);

// Throws SpecError where the text is no method's name.
void require_exchange_method(const SpecNode& node);

}  // namespace tbdsim
