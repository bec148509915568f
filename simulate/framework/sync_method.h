// The methods by which replicas of a model synchronize their gradients, as a table.
#pragma once

#include <string>
#include <string_view>

namespace tbdsim {

class SpecNode;

// Where gradients are summed.
enum class ReductionSite {
  gpu_ranks,     // on all GPUs, by all-reduce
  host_ranks,    // in host memory, by an all-reduce between one process for each GPU
  host_servers,  // in host memory, by one server in each machine, each with a share of the parameters
  gpu_servers,   // on the GPUs of one machine, each with a share of the parameters
  first_gpu,     // on the first GPU of one machine
};

// How messages are sent between machines.
enum class Transport { rdma, tcp, rpc };

struct SyncMethod {
  std::string_view name;
  std::string_view description;
  ReductionSite reduction_site = ReductionSite::gpu_ranks;
  Transport transport = Transport::rdma;
  bool overlaps = true;         // with the backward pass
  bool next_iteration = false;  // new parameters are fetched as the next iteration needs them
  bool shards_by_key = false;   // MXNet: arrays below 1e6 elements go whole to one server
  bool in_order = false;  // arrays go whole to servers as the program creates them, not the largest first
  bool in_turn = false;   // such arrays go to one server after another, whatever their sizes
  bool reduce_on_gpu_first = false;  // each machine sends its servers one sum, made on its GPUs
  bool shards_update = false;        // each rank updates its share, then all gather the parameters (ZeRO-1)
  bool asynchronous = false;         // no rank waits for others
  // Parameters and their gradients are sent in fp32, as they are stored whatever the precision
  // (tensorflow/benchmarks at 8fb7908, benchmark_cnn.py: --fp16_vars is false, and gradients are made compact
  // only where every GPU has its own variables; variable_mgr.py, VariableMgrLocalReplicated).
  bool fp32_variables = false;
};

// Throws UsageError with "did you mean".
[[nodiscard]] const SyncMethod& find_sync_method(std::string_view name);

// Throws SpecError where the text is no method's name.
void require_sync_method(const SpecNode& node);

}  // namespace tbdsim
