#include "simulate/framework/sync_method.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "hwspecs/base/error.h"
#include "hwspecs/base/spec_reader.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::array<SyncMethod, 17> kMethods = {{
    {.name = "all_reduce", .description = "NCCL: the fastest of its algorithms, over RDMA between machines"},
    {.name = "all_reduce_rdma", .description = "the same"},
    {.name = "all_reduce_tcp", .description = "NCCL, over sockets", .transport = Transport::tcp},
    {.name = "all_reduce_cpu_rdma",
     .description = "MPI in host memory, over RDMA",
     .reduction_site = ReductionSite::host_ranks},
    {.name = "all_reduce_cpu_tcp",
     .description = "MPI in host memory, over sockets",
     .reduction_site = ReductionSite::host_ranks,
     .transport = Transport::tcp},
    {.name = "zero1",
     .description = "reduce-scatter, each rank updates its share, all-gather (ZeRO stage 1)",
     .shards_update = true},
    {.name = "torch_data_parallel",
     .description = "PyTorch's DataParallel: GPU 0 sums, updates and sends parameters to the others",
     .reduction_site = ReductionSite::first_gpu,
     .overlaps = false},
    {.name = "parameter_server",
     .description = "TensorFlow: variables on the GPUs in turn",
     .reduction_site = ReductionSite::gpu_servers,
     .next_iteration = true,
     .in_order = true,
     .fp32_variables = true},
    {.name = "parameter_server_cpu",
     .description = "TensorFlow: variables in host memory; over gRPC between machines",
     .reduction_site = ReductionSite::host_servers,
     .transport = Transport::rpc,
     .next_iteration = true,
     .in_order = true,
     .fp32_variables = true},
    {.name = "parameter_server_cpu_async",
     .description = "the same, without waiting for other workers",
     .reduction_site = ReductionSite::host_servers,
     .transport = Transport::rpc,
     .next_iteration = true,
     .in_order = true,
     .asynchronous = true,
     .fp32_variables = true},
    {.name = "replicated_copy",
     .description = "TensorFlow: variables on each GPU, sums by copies between GPUs",
     .reduction_site = ReductionSite::gpu_servers},
    {.name = "distributed_replicated",
     .description = "TensorFlow: variables on each GPU, sums in host memory and between machines over gRPC",
     .reduction_site = ReductionSite::host_servers,
     .transport = Transport::rpc,
     .in_order = true,
     .in_turn = true,
     .fp32_variables = true},
    {.name = "kvstore_local",
     .description = "MXNet: sums in host memory",
     .reduction_site = ReductionSite::host_servers,
     .transport = Transport::tcp},
    {.name = "kvstore_device",
     .description = "MXNet: sums on the GPUs in turn",
     .reduction_site = ReductionSite::gpu_servers},
    {.name = "kvstore_dist_sync",
     .description = "MXNet: sums in host memory, servers in every machine",
     .reduction_site = ReductionSite::host_servers,
     .transport = Transport::tcp,
     .shards_by_key = true},
    {.name = "kvstore_dist_device_sync",
     .description = "MXNet: sums on the GPUs, servers in every machine",
     .reduction_site = ReductionSite::host_servers,
     .transport = Transport::tcp,
     .shards_by_key = true,
     .reduce_on_gpu_first = true},
    {.name = "kvstore_dist_async",
     .description = "MXNet: as kvstore_dist_sync, without waiting for other workers",
     .reduction_site = ReductionSite::host_servers,
     .transport = Transport::tcp,
     .shards_by_key = true,
     .asynchronous = true},
}};

const SyncMethod* method_named(std::string_view name) {
  const auto* found = std::find_if(kMethods.begin(), kMethods.end(),
                                   [&](const SyncMethod& method) { return method.name == name; });
  return found == kMethods.end() ? nullptr : found;
}

std::string unknown(std::string_view name) {
  std::vector<std::string> names;
  for (const SyncMethod& method : kMethods) names.emplace_back(method.name);
  const bool shards = name.starts_with("fsdp") || name.starts_with("zero");
  return fmt::format(
      "unknown exchange method {}; expected one of {}{}{}", in_quotes(name), joined(names),
      did_you_mean(name, names),
      shards ? " ('tbd-sim plan' divides a model over GPUs: --zero 2, --zero 3, --stack fsdp)" : "");
}

}  // namespace

const SyncMethod& find_sync_method(std::string_view name) {
  const SyncMethod* method = method_named(name);
  if (method == nullptr) throw UsageError(unknown(name));
  return *method;
}

void require_sync_method(const SpecNode& node) {
  if (method_named(node.text()) == nullptr) node.fail(unknown(node.text()));
}

}  // namespace tbdsim
