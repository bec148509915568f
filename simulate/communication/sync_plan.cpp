#include "simulate/communication/sync_plan.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

// Rates of one process over TCP sockets and over TensorFlow's gRPC, which copies every tensor into a message.
// Estimates: TCP on one core, and tensors over gRPC at about 10 Gbit/s.
constexpr BytesPerSecond kSockets(2.5e9);
constexpr BytesPerSecond kRpc(1'100'000'000);
// Latency of a step over TCP: two network stacks and a switch, the estimate of ethernet_25g.yaml.
constexpr Seconds kSocketStep(15e-6);
// Achieved fraction of the host's memory bandwidth while it adds arrays. Estimate: a few threads of 28 cores.
constexpr double kHostSums = 0.4;
// Memory traffic of one core. Estimate: ten cache lines of 64 bytes in flight (line fill buffers, Intel's
// optimization manual) at a latency of some 64 ns.
constexpr BytesPerSecond kCore(10e9);
constexpr double kCorePasses = 3;  // memory accesses to copy or add an element: two reads and a write
// Open MPI's pml_ob1 sends blocks above 64 kB by a rendezvous: request, answer, data.
constexpr double kMessagesOfAStep = 3;
constexpr double kMostSms = 24;  // one for each NCCL channel; a ring has two
constexpr double kPcieSms = 2;

BytesPerSecond transport_limit(Transport transport) {
  if (transport == Transport::tcp) return kSockets;
  return transport == Transport::rpc ? kRpc : BytesPerSecond(std::numeric_limits<double>::infinity());
}

void require_machines(const Cluster& cluster, const MachineSpec& machine, const SyncMethod& method) {
  if (cluster.machines < 1) throw UsageError("0 machines; expected 1 or more");
  if (cluster.machines == 1) return;
  if (machine.networks.empty()) {
    throw UsageError(fmt::format(
        "{} machines, and {} has no network to others; expected one, as 'ethernet_10g' or '25 Gbit/s'",
        cluster.machines, machine.title));
  }
  if (machine.machines && cluster.machines > *machine.machines) {
    throw UsageError(
        fmt::format("{} machines; there are {} of {}", cluster.machines, *machine.machines, machine.title));
  }
  if (method.sum == ReductionSite::gpu_servers || method.sum == ReductionSite::first_gpu) {
    throw UsageError(fmt::format("{} works within one machine; expected another method for {} machines",
                                 method.name, cluster.machines));
  }
}

// Adds the stages and links of a method to a plan.
class SyncPlanner {
 public:
  SyncPlanner(const MachineSpec& machine, const GpuSpec& gpu, SyncPlan& exchange)
      : machine_(machine), topology_(machine, gpu, exchange.cluster.gpus), exchange_(exchange) {}

  void run() {
    switch (exchange_.method->sum) {
      case ReductionSite::ranks:
        return ranks();
      case ReductionSite::host_ranks:
        return host_ranks();
      case ReductionSite::host_server:
        return host_server();
      case ReductionSite::gpu_servers:
        return gpu_servers();
      case ReductionSite::first_gpu:
        return first_gpu();
    }
  }

 private:
  [[nodiscard]] int gpus() const { return exchange_.cluster.gpus; }
  [[nodiscard]] int machines() const { return exchange_.cluster.machines; }

  SyncStage& add(std::string name, BytesPerSecond rate, Seconds message) {
    exchange_.stages.push_back({.name = std::move(name), .all_reduce = {}, .message = message, .rate = rate});
    return exchange_.stages.back();
  }

  // Adds the traffic to the links; each of its flows carries so many bytes for each byte of gradients.
  void use(const Traffic& traffic, double bytes_per_byte) {
    const std::vector<BytesPerSecond> load = topology_.load(traffic, BytesPerSecond(bytes_per_byte));
    for (std::size_t i = 0; i < load.size(); ++i) {
      if (load[i].si() > 0)
        exchange_.links.push_back({topology_.links()[i].name, topology_.links()[i].capacity, load[i].si()});
    }
  }

  // The machines as ranks, with the bandwidth of all network cards of one machine.
  [[nodiscard]] RankGroup network() {
    RankGroup group{.ranks = machines(), .bandwidth = {}, .per_rank = {}, .cost = {}};
    if (machines() == 1) return group;
    const Network& network = machine_.networks.front();
    const double cards = static_cast<double>(std::max<std::size_t>(1, network.below.size()));
    group.bandwidth =
        std::min(achievable(network.link) * cards, transport_limit(exchange_.method->transport));
    group.cost = network.link.collective;
    group.cost.step = std::max(group.cost.step, network.link.latency);
    exchange_.links.push_back(
        {"network", achievable(network.link) * cards, 2 * (1 - 1.0 / static_cast<double>(machines()))});
    return group;
  }

  void ranks() {
    const Rings rings = exchange_.single_ring ? topology_.single_ring() : topology_.rings();
    AllReduceRanks all{{.ranks = gpus(), .bandwidth = rings.bandwidth, .per_rank = {}, .cost = rings.cost},
                       network()};
    if (machine_.nvlink && machine_.nvlink->to_switch > 0) {
      all.inner.per_rank = machine_.nvlink->link.bandwidth * static_cast<double>(machine_.nvlink->to_switch);
    }
    all.outer.cost.launch = std::max(all.outer.cost.launch, rings.cost.launch);
    if (!rings.staged) exchange_.interference = 0;
    use(rings.traffic, 2 * (1 - 1.0 / static_cast<double>(exchange_.ranks())));
    exchange_.sms = rings.nvlink ? std::min(kMostSms, 2.0 * rings.channels) : kPcieSms;
    const bool halves = exchange_.method->shards_update;
    for (const char* name : {"reduce_scatter", "all_gather"}) {
      SyncStage stage{.name = halves ? name : "all_reduce", .all_reduce = all, .message = {}, .on_gpu = true};
      if (halves) halve(*stage.all_reduce);
      stage.after_all = halves && !exchange_.stages.empty();
      exchange_.stages.push_back(std::move(stage));
      if (!halves) return;
    }
  }

  // Reduce-scatter and all-gather take half of an all-reduce each.
  static void halve(AllReduceRanks& all) {
    for (RankGroup* group : {&all.inner, &all.outer}) {
      group->bandwidth = group->bandwidth * 2.0;
      group->per_rank = group->per_rank * 2.0;
      group->cost.launch = group->cost.launch * 0.5;
      group->cost.step = group->cost.step * 0.5;
      group->cost.root = group->cost.root * 0.5;
    }
  }

  void push_and_pull(const Traffic& up, const Traffic& down, const std::function<void()>& between) {
    use(up, 1);
    use(down, 1);
    const Seconds latency = machine_.root_ports.front().link.latency;
    add("push", up.slowest, latency);
    between();
    add("pull", down.slowest, latency).next_forward = exchange_.method->next_iteration;
  }

  void host_ranks() {
    push_and_pull(topology_.to_host(), topology_.from_host(), [&] {
      exchange_.stages.push_back({.name = "all_reduce",
                                  .all_reduce = AllReduceRanks{process_ring(), {}},
                                  .sender_busy = AllReduceRanks{process_sums(), {}},
                                  .message = {},
                                  .in_host = true});
    });
  }

  // Open MPI's ring all-reduce (coll/tuned, above 10 kB) over all processes of all machines. A step receives,
  // adds and sends, one after another in one thread (coll_base_allreduce.c: sends block).
  [[nodiscard]] RankGroup process_ring() {
    RankGroup ring = network();
    const double sending = machines() == 1 ? 0 : 1 / ring.bandwidth.si();
    const double working = time_of_process();
    const bool waits = exchange_.method->transport == Transport::rdma;  // no core moves what is sent
    const double shared = waits ? std::min(sending, copy_from_neighbour()) : 0;
    ring.bandwidth = BytesPerSecond(1 / (working + sending - shared));
    ring.cost.step = ring.cost.step * kMessagesOfAStep;
    ring.ranks = exchange_.ranks();
    return ring;
  }

  [[nodiscard]] RankGroup process_sums() const {
    RankGroup ring{.ranks = exchange_.ranks(), .bandwidth = {}, .per_rank = {}, .cost = {}};
    ring.bandwidth = BytesPerSecond(1 / time_of_process());
    ring.cost.step = machines() == 1 ? Seconds(0) : kSocketStep * kMessagesOfAStep;
    return ring;
  }

  // CPU seconds of a process for each byte that it sends. It adds half of these bytes, copies those that a
  // neighbour in its machine sends, and copies all gradients into the fusion buffer and out again (Horovod
  // 0.9.10, mpi_ops.cc: MEMCPY_IN_FUSION_BUFFER, MEMCPY_OUT_FUSION_BUFFER).
  [[nodiscard]] double time_of_process() const {
    const double sent = 2 * (1 - 1 / static_cast<double>(exchange_.ranks()));  // bytes for each of a gradient
    return copy_from_neighbour() + (0.5 + 2 / sent) * pass_of_core();
  }

  [[nodiscard]] double copy_from_neighbour() const { return gpus() > 1 ? pass_of_core() : 0; }

  // Seconds to copy or add a byte while the other processes of the machine do the same.
  [[nodiscard]] double pass_of_core() const {
    const BytesPerSecond share = host_memory_bandwidth(machine_) * (kHostSums / static_cast<double>(gpus()));
    return kCorePasses / std::min(kCore, share).si();
  }

  // Bytes of the sum per second when so many arrays are added in host memory.
  [[nodiscard]] BytesPerSecond sums(int arrays) const {
    return host_memory_bandwidth(machine_) * (kHostSums / (static_cast<double>(arrays) + 2));
  }

  void server_network() {
    if (machines() == 1) return;
    const RankGroup group = network();
    const double share = 2 * (1 - 1.0 / static_cast<double>(machines()));  // there and back, but for its own
    add("network", group.bandwidth * (1 / share), group.cost.step * 2.0);
  }

  void host_server() {
    if (!exchange_.method->locally_on_gpu) {
      push_and_pull(topology_.to_host(), topology_.from_host(), [&] {
        add("sum", sums(gpus()), {});
        server_network();
      });
      return;
    }
    gpu_servers();
    server_network();
  }

  // Each GPU sends all shards but its own to the others, and gets as much back.
  void gpu_servers() {
    if (gpus() == 1) return;
    const Traffic all = topology_.all_to_all();
    const BytesPerSecond rate = all.slowest * static_cast<double>(gpus());
    use(all, 2 / static_cast<double>(gpus()));
    const Seconds latency = machine_.root_ports.front().link.latency;
    add("push", rate, latency);
    add("pull", rate, latency).next_forward = exchange_.method->next_iteration;
  }

  void first_gpu() {
    if (gpus() == 1) return;
    push_and_pull(topology_.to_first_gpu(), topology_.from_first_gpu(), [] {});
  }

  const MachineSpec& machine_;
  Topology topology_;
  SyncPlan& exchange_;
};

}  // namespace

Seconds SyncStage::time(Bytes bytes) const {
  if (all_reduce) return message + all_reduce_time(*all_reduce, bytes);
  return message + bytes / rate;
}

SyncPlan plan_sync(const Cluster& cluster, const GpuSpec& gpu, const Framework& framework,
                   const MachineSpec& machine) {
  require_cluster(cluster);
  const std::string& standard = cluster.machines > 1 ? framework.exchange.across : framework.exchange.within;
  SyncPlan exchange;
  exchange.method = &find_sync_method(cluster.method.empty() ? standard : cluster.method);
  exchange.cluster = cluster;
  const ReductionSite sum = exchange.method->sum;
  if (sum == ReductionSite::ranks || sum == ReductionSite::host_ranks) {
    const bool across = cluster.machines > 1;
    exchange.bucket = across ? framework.exchange.bucket_across : framework.exchange.bucket;
    exchange.first_bucket = std::min(exchange.bucket, framework.exchange.first_bucket);
    if (across && framework.exchange.bucket == Bytes(0)) exchange.first_bucket = exchange.bucket;
    if (exchange.bucket > Bytes(0)) exchange.cycle = framework.exchange.cycle;
  }
  exchange.interference =
      sum == ReductionSite::ranks ? framework.exchange.interference : framework.exchange.copy_interference;
  exchange.overlaps = exchange.method->overlaps;
  exchange.single_ring = framework.exchange.single_ring;
  exchange.machine = machine.title;
  exchange.cores = static_cast<double>(machine.sockets * machine.cpu.core_count) / cluster.gpus;
  require_machines(cluster, machine, *exchange.method);
  SyncPlanner(machine, gpu, exchange).run();
  if (!exchange.stages.empty()) exchange.stages.front().message += framework.exchange.message;
  return exchange;
}

}  // namespace tbdsim
