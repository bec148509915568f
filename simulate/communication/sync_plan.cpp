#include "simulate/communication/sync_plan.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

// The most that a machine sends over TCP sockets in a collective, however fast its network: the copies
// between the program and the kernel on a core or two (NCCL, src/transport/net_socket.cc: one thread of a
// process moves its sockets; Open MPI, btl/tcp, the same). The geometric mean of what two clusters reach: 8.7
// Gbit/s (two V100 at 14 to 21 Gbit/s, bytedance/byteps#29) and 15 (two RTX 2080 Ti at 50 Gbit/s,
// siasosp23/artifacts, BERT). A third, g4dn of AWS at 50 Gbit/s, reaches 5.5 (petuum/adaptdl, BERT), as where
// one flow may have 5 Gbit/s.
constexpr BytesPerSecond kSockets(1.4e9);
// The same over TensorFlow's gRPC, which copies every tensor into a message. Estimate: about 10 Gbit/s.
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
constexpr double kMessagesPerStep = 3;
constexpr double kMostSms = 24;  // one for each NCCL channel; a ring has two
constexpr double kPcieSms = kSmsOfStart;

// Share of a slot's rate at which NCCL's rings pass from GPUs that have slots alone to a network card, and
// from it, through host memory. The geometric mean of two clusters of DeepBench (NCCL 2.0, FDR, eight GPUs in
// each of 2 and 4 machines, 12 to 258 MB): 5.3 GB/s below one root (TITAN X of Pascal, GTX 1080 Ti), 4.1
// below two (TITAN X, M40), where a slot has 12.3 and the card 6.6. Cards beside GPUs with NVLink reach what
// their links' files say (H200 and B200, EFA: 0.91 and 0.95 of the wire).
constexpr double kSlotToCard = 0.38;

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
  if (method.reduction_site == ReductionSite::gpu_servers ||
      method.reduction_site == ReductionSite::first_gpu) {
    throw UsageError(fmt::format("{} works within one machine; expected another method for {} machines",
                                 method.name, cluster.machines));
  }
}

// Adds the stages and links of a method to a plan.
class SyncPlanner {
 public:
  SyncPlanner(const MachineSpec& machine, const GpuSpec& gpu, SyncPlan& plan)
      : machine_(machine), topology_(machine, gpu, plan.cluster.gpus), plan_(plan) {}

  void run() {
    switch (plan_.method->reduction_site) {
      case ReductionSite::gpu_ranks:
        return gpu_ranks();
      case ReductionSite::host_ranks:
        return host_ranks();
      case ReductionSite::host_servers:
        return host_servers();
      case ReductionSite::gpu_servers:
        return gpu_servers();
      case ReductionSite::first_gpu:
        return first_gpu();
    }
  }

 private:
  [[nodiscard]] int gpus() const { return plan_.cluster.gpus; }
  [[nodiscard]] int machines() const { return plan_.cluster.machines; }

  SyncStage& add(std::string name, BytesPerSecond rate, Seconds message) {
    plan_.stages.push_back({.name = std::move(name), .all_reduce = {}, .message = message, .rate = rate});
    return plan_.stages.back();
  }

  // Adds the traffic to the links; each of its flows carries so many bytes for each byte of gradients.
  void use(const Traffic& traffic, double bytes_per_byte) {
    const std::vector<BytesPerSecond> load = topology_.load(traffic, BytesPerSecond(bytes_per_byte));
    for (std::size_t i = 0; i < load.size(); ++i) {
      if (load[i].si() > 0)
        plan_.links.push_back({topology_.links()[i].name, topology_.links()[i].capacity, load[i].si()});
    }
  }

  // Network cards of a machine.
  [[nodiscard]] double cards() const {
    return static_cast<double>(std::max<std::size_t>(1, machine_.networks.front().below.size()));
  }

  // The machines as ranks, with the bandwidth of all network cards of one machine.
  [[nodiscard]] RankGroup network() {
    RankGroup group{.ranks = machines(), .bandwidth = {}, .per_rank = {}, .cost = {}};
    if (machines() == 1) return group;
    const Network& network = machine_.networks.front();
    group.bandwidth = std::min(achievable(network.link) * cards(), transport_limit(plan_.method->transport));
    group.cost = network.link.collective;
    group.cost.step = std::max(group.cost.step, network.link.latency);
    plan_.links.push_back(
        {"network", achievable(network.link) * cards(), 2 * (1 - 1.0 / static_cast<double>(machines()))});
    return group;
  }

  void gpu_ranks() {
    const Rings rings = plan_.single_ring ? topology_.single_ring() : topology_.rings();
    AllReduceRanks all{{.ranks = gpus(), .bandwidth = rings.bandwidth, .per_rank = {}, .cost = rings.cost},
                       network()};
    // Bytes to other machines leave the GPUs over their slots, which limit them together.
    all.outer.bandwidth = std::min(all.outer.bandwidth, topology_.slot_rate() * static_cast<double>(gpus()));
    if (!machine_.nvlink && machines() > 1)
      all.outer.bandwidth = std::min(all.outer.bandwidth, topology_.slot_rate() * (kSlotToCard * cards()));
    if (machine_.nvlink && machine_.nvlink->to_switch > 0) {
      all.inner.per_rank = machine_.nvlink->link.bandwidth * static_cast<double>(machine_.nvlink->to_switch);
    }
    all.outer.cost.launch = std::max(all.outer.cost.launch, rings.cost.launch);
    if (!rings.staged) plan_.interference = 0;
    use(rings.traffic, 2 * (1 - 1.0 / static_cast<double>(plan_.ranks())));
    plan_.sms = rings.nvlink ? std::min(kMostSms, 2.0 * rings.channels) : kPcieSms;
    if (!plan_.method->shards_update) {
      add_collective("all_reduce", all);
      return;
    }
    halve(all);
    add_collective("reduce_scatter", all);
    add_collective("all_gather", all).after_all = true;
  }

  SyncStage& add_collective(std::string name, const AllReduceRanks& ranks) {
    plan_.stages.push_back({.name = std::move(name), .all_reduce = ranks, .message = {}, .on_gpu = true});
    return plan_.stages.back();
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
    add("pull", down.slowest, latency).next_forward = plan_.method->next_iteration;
  }

  void host_ranks() {
    push_and_pull(topology_.to_host(), topology_.from_host(), [&] {
      plan_.stages.push_back({.name = "all_reduce",
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
    const bool waits = plan_.method->transport == Transport::rdma;  // no core moves what is sent
    const double shared = waits ? std::min(sending, copy_from_neighbour()) : 0;
    ring.bandwidth = BytesPerSecond(1 / (working + sending - shared));
    ring.cost.step = ring.cost.step * kMessagesPerStep;
    ring.ranks = plan_.ranks();
    return ring;
  }

  [[nodiscard]] RankGroup process_sums() const {
    RankGroup ring{.ranks = plan_.ranks(), .bandwidth = {}, .per_rank = {}, .cost = {}};
    ring.bandwidth = BytesPerSecond(1 / time_of_process());
    ring.cost.step = machines() == 1 ? Seconds(0) : kSocketStep * kMessagesPerStep;
    return ring;
  }

  // CPU seconds of a process for each byte that it sends. It adds half of these bytes, copies those that a
  // neighbour in its machine sends, and copies all gradients into the fusion buffer and out again (Horovod
  // 0.9.10, mpi_ops.cc: MEMCPY_IN_FUSION_BUFFER, MEMCPY_OUT_FUSION_BUFFER).
  [[nodiscard]] double time_of_process() const {
    const double sent = 2 * (1 - 1 / static_cast<double>(plan_.ranks()));  // bytes for each of a gradient
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
    SyncStage& stage = add("network", group.bandwidth * (1 / share), group.cost.step * 2.0);
    if (plan_.method->in_order) stage.one_server = stage.rate;
  }

  void host_servers() {
    if (!plan_.method->reduce_on_gpu_first) {
      push_and_pull(topology_.to_host(), topology_.from_host(), [&] {
        add("sum", sums(gpus()), {});
        server_network();
      });
      return;
    }
    gpu_servers();
    server_network();
  }

  // Each GPU sends all arrays but its own to the others, and gets as much back. All links of the machine are
  // loaded alike; the slot of the GPU with most of the bytes is not.
  void gpu_servers() {
    if (gpus() == 1) return;
    const Traffic all = topology_.all_to_all();
    const BytesPerSecond rate = all.slowest * static_cast<double>(gpus());
    use(all, 2 / static_cast<double>(gpus()));
    const Seconds latency = machine_.root_ports.front().link.latency;
    add("push", rate, latency).one_server = topology_.to_first_gpu().slowest * static_cast<double>(gpus());
    SyncStage& pull = add("pull", rate, latency);
    pull.one_server = topology_.from_first_gpu().slowest * static_cast<double>(gpus());
    pull.next_forward = plan_.method->next_iteration;
  }

  void first_gpu() {
    if (gpus() == 1) return;
    push_and_pull(topology_.to_first_gpu(), topology_.from_first_gpu(), [] {});
  }

  const MachineSpec& machine_;
  Topology topology_;
  SyncPlan& plan_;
};

}  // namespace

Seconds SyncStage::time(Bytes bytes, double fullest) const {
  if (all_reduce) return message + all_reduce_time(*all_reduce, bytes);
  const Seconds all = bytes / rate;
  if (one_server <= BytesPerSecond(0)) return message + all;
  return message + std::max(all, bytes * fullest / one_server);
}

double SyncStage::flowing(Bytes bytes, double fullest) const {
  const Seconds all = time(bytes, fullest);
  if (!all_reduce || all <= Seconds(0)) return 1;
  return std::min(1.0, transfer_time(*all_reduce, bytes) / all);
}

SyncPlan plan_sync(const Cluster& cluster, const GpuSpec& gpu, const Framework& framework,
                   const MachineSpec& machine) {
  require_cluster(cluster);
  const std::string& standard = cluster.machines > 1 ? framework.sync.across : framework.sync.within;
  SyncPlan plan;
  plan.method = &find_sync_method(cluster.method.empty() ? standard : cluster.method);
  plan.cluster = cluster;
  const ReductionSite sum = plan.method->reduction_site;
  if (sum == ReductionSite::gpu_ranks || sum == ReductionSite::host_ranks) {
    const bool across = cluster.machines > 1;
    plan.bucket = across ? framework.sync.bucket_across : framework.sync.bucket;
    plan.first_bucket = std::min(plan.bucket, framework.sync.first_bucket);
    if (across && framework.sync.bucket == Bytes(0)) plan.first_bucket = plan.bucket;
    if (plan.bucket > Bytes(0)) plan.cycle = framework.sync.cycle;
  }
  plan.interference =
      sum == ReductionSite::gpu_ranks ? framework.sync.interference : framework.sync.copy_interference;
  plan.overlaps = plan.method->overlaps;
  plan.single_ring = framework.sync.single_ring;
  plan.cut_tables = framework.sync.cut_tables;
  plan.one_interpreter = framework.launch_model.one_interpreter;
  plan.machine = machine.title;
  plan.cores = static_cast<double>(machine.sockets * machine.cpu.core_count) / cluster.gpus;
  require_machines(cluster, machine, *plan.method);
  SyncPlanner(machine, gpu, plan).run();
  if (!plan.stages.empty()) plan.stages.front().message += framework.sync.message;
  return plan;
}

}  // namespace tbdsim
