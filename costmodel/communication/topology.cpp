#include "costmodel/communication/topology.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "costmodel/communication/nvlink_rings.h"
#include "hwspecs/base/error.h"

namespace tbdsim {
namespace {

// Bandwidth of NCCL's copies that are staged in host memory, over the slot's, and the time of a step. Chosen
// by hand near training runs of two and four RTX 2080 Ti without peer access.
constexpr double kStaged = 0.85;
constexpr Seconds kStagedStep(15e-6);  // two processes and host memory; estimate
// The same of copies by the driver, which move a buffer's part in and then out. Two servers without peer
// access with VGG-16, whose first fully connected layer lies on one GPU, have its gradient come and go at
// about this rate: 5.6 to 7.5 GB/s of 12.3 in three and four GTX 1080 under MXNet (apache/mxnet#5845), 12 of
// 25 in two to eight RTX 3090 under TensorFlow (server-gear.com, 2021; fp32 gradients).
constexpr double kDriverCopies = 0.5;

// The slower of a GPU's bus and its port's slots: a slot runs at the rate that both ends support.
const LinkSpec& slot_of(const LinkSpec& bus, const RootPort& port) {
  return achievable(bus) < achievable(port.of_slots()) ? bus : port.of_slots();
}

}  // namespace

Topology::Topology(const MachineSpec& machine, const GpuSpec& gpu, int gpus)
    : machine_(machine), slot_(slot_of(gpu.bus, machine.root_ports.front())), gpus_(gpus) {
  if (gpus < 1 || gpus > machine.gpus) {
    throw UsageError(fmt::format("{} GPUs in a machine; {} has {}", gpus, machine.title, machine.gpus));
  }
  add_host_links(gpu);
  for (const LinkSpec* link : {&gpu.bus, &machine.root_ports.front().link}) limit_staged(link->staged);
  add_nvlinks();
}

void Topology::limit_staged(BytesPerSecond bus_bandwidth) {
  if (bus_bandwidth <= BytesPerSecond(0)) return;
  const BytesPerSecond copies = bus_bandwidth * (1 / slot_.collective.efficiency);
  if (staged_ < 0) staged_ = add("all staged copies", copies);
  BytesPerSecond& capacity = links_[static_cast<std::size_t>(staged_)].capacity;
  capacity = std::min(capacity, copies);
}

LinkIndex Topology::add(std::string name, BytesPerSecond capacity) {
  links_.push_back({std::move(name), capacity});
  return static_cast<LinkIndex>(links_.size()) - 1;
}

void Topology::add_host_links(const GpuSpec& gpu) {
  for (int s = 0; s < machine_.sockets; ++s)
    memory_.push_back(add(fmt::format("socket {}, memory", s), machine_.cpu.memory_bandwidth));
  to_socket_.assign(static_cast<std::size_t>(machine_.sockets), memory_);
  for (int a = 0; a < machine_.sockets; ++a) {
    for (int b = 0; b < machine_.sockets; ++b) {
      if (a == b) continue;
      const SocketLink& joint = *machine_.socket_link;
      const BytesPerSecond capacity = achievable(joint.link) * static_cast<double>(joint.count);
      to_socket_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] =
          add(fmt::format("socket {} to {}", a, b), capacity);
    }
  }
  slots_.resize(static_cast<std::size_t>(gpus_));
  for (std::size_t p = 0; p < machine_.root_ports.size(); ++p) {
    const RootPort& port = machine_.root_ports[p];
    const LinkIndex up = add(fmt::format("root port {}, up", p), achievable(port.link));
    const LinkIndex down = add(fmt::format("root port {}, down", p), achievable(port.link));
    for (const int g : port.gpus) {
      if (g >= gpus_) continue;
      const LinkSpec& link = slot_of(gpu.bus, port);
      const BytesPerSecond slot = achievable(link);
      const BytesPerSecond across_sockets = slot * (link.across_sockets / link.across_ports);
      Slot& s = slots_[static_cast<std::size_t>(g)];
      s.port = static_cast<int>(p);
      s.socket = port.socket;
      s.port_up = up;
      s.port_down = down;
      s.up = add(fmt::format("GPU {}, slot, up", g), slot);
      s.down = add(fmt::format("GPU {}, slot, down", g), slot);
      s.across = add(fmt::format("GPU {}, to other sockets", g), across_sockets);
      s.staged = add(fmt::format("GPU {}, staged copies", g), slot * kStaged);
      s.copies_up = add(fmt::format("GPU {}, copies by the driver, up", g), slot * kDriverCopies);
      s.copies_down = add(fmt::format("GPU {}, copies by the driver, down", g), slot * kDriverCopies);
    }
  }
}

void Topology::add_nvlinks() {
  if (!machine_.nvlink) return;
  const BytesPerSecond one = achievable(machine_.nvlink->link);
  for (const NvLinkPair& pair : machine_.nvlink->pairs) {
    if (std::max(pair.a, pair.b) >= gpus_) continue;
    const BytesPerSecond capacity = one * static_cast<double>(pair.links);
    for (const auto& [from, to] : {std::pair(pair.a, pair.b), std::pair(pair.b, pair.a)})
      wires_[{from, to}] = add(fmt::format("NVLinks, GPU {} to {}", from, to), capacity);
  }
  if (machine_.nvlink->to_switch == 0) return;
  const BytesPerSecond rate = one * static_cast<double>(machine_.nvlink->to_switch);
  for (int g = 0; g < gpus_; ++g) {
    Slot& slot = slots_[static_cast<std::size_t>(g)];
    slot.switch_up = add(fmt::format("GPU {}, NVLinks, out", g), rate);
    slot.switch_down = add(fmt::format("GPU {}, NVLinks, in", g), rate);
  }
}

void Topology::cross_sockets(std::vector<LinkIndex>& flow, int from, int to) const {
  if (from != to) flow.push_back(to_socket_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]);
}

// The route from GPU a to GPU b: over NVLinks if any join the two, else over PCI Express; through host memory
// where `staged`.
Flow Topology::between(int a, int b, bool staged) const {
  const Slot& from = slots_[static_cast<std::size_t>(a)];
  const Slot& to = slots_[static_cast<std::size_t>(b)];
  if (from.switch_up >= 0) return {{from.switch_up, to.switch_down}};
  if (const auto wire = wires_.find({a, b}); wire != wires_.end()) return {{wire->second}};
  std::vector<LinkIndex> links{from.up, to.down};
  const bool peers = !staged && are_peers(machine_, a, b);
  if (!peers || from.port != to.port) {
    links.push_back(from.port_up);
    links.push_back(to.port_down);
  }
  cross_sockets(links, from.socket, to.socket);
  if (peers) {
    if (from.socket != to.socket) links.push_back(from.across);
  } else {
    links.push_back(from.staged);
    const LinkIndex memory = memory_[static_cast<std::size_t>(to.socket)];
    links.insert(links.end(), {memory, memory});
    if (staged_ >= 0) links.push_back(staged_);
  }
  return {links};
}

Flow Topology::copy_between(int a, int b) const {
  Flow flow = between(a, b);
  if (!are_peers(machine_, a, b)) {
    flow.links.push_back(slots_[static_cast<std::size_t>(a)].copies_up);
    flow.links.push_back(slots_[static_cast<std::size_t>(b)].copies_down);
  }
  return flow;
}

Traffic Topology::shared(std::vector<Flow> flows) const {
  std::vector<BytesPerSecond> capacities;
  for (const TopologyLink& link : links_) capacities.push_back(link.capacity);
  const std::vector<BytesPerSecond> rates = max_min_fair(capacities, flows);
  const BytesPerSecond slowest =
      rates.empty() ? BytesPerSecond(0) : *std::min_element(rates.begin(), rates.end());
  return {std::move(flows), slowest};
}

// Every GPU's transfer into the memory of socket 0, where a process keeps its variables.
Traffic Topology::to_host() const {
  std::vector<Flow> flows;
  for (const Slot& slot : slots_) {
    flows.push_back({{slot.up, slot.port_up, memory_[0]}});
    cross_sockets(flows.back().links, slot.socket, 0);
  }
  return shared(std::move(flows));
}

Traffic Topology::from_host() const {
  std::vector<Flow> flows;
  for (const Slot& slot : slots_) {
    flows.push_back({{slot.down, slot.port_down, memory_[0]}});
    cross_sockets(flows.back().links, 0, slot.socket);
  }
  return shared(std::move(flows));
}

Traffic Topology::to_first_gpu() const {
  std::vector<Flow> flows;
  for (int g = 1; g < gpus_; ++g) flows.push_back(copy_between(g, 0));
  return shared(std::move(flows));
}

Traffic Topology::from_first_gpu() const {
  std::vector<Flow> flows;
  for (int g = 1; g < gpus_; ++g) flows.push_back(copy_between(0, g));
  return shared(std::move(flows));
}

Traffic Topology::all_to_all() const {
  std::vector<Flow> flows;
  for (int a = 0; a < gpus_; ++a) {
    for (int b = 0; b < gpus_; ++b) {
      if (a != b) flows.push_back(copy_between(a, b));
    }
  }
  return shared(std::move(flows));
}

std::optional<Rings> Topology::nvlink_only() const {
  if (!machine_.nvlink) return std::nullopt;
  const NvLink& nvlink = *machine_.nvlink;
  const BytesPerSecond rate = achievable(nvlink.link);
  const auto over_nvlinks = [&](int channels, double links) {
    return Rings{.channels = channels,
                 .bandwidth = rate * links,
                 .cost = nvlink.link.collective,
                 .nvlink = true,
                 .traffic = {}};
  };
  if (nvlink.to_switch > 0) return over_nvlinks(nvlink.to_switch, static_cast<double>(nvlink.to_switch));
  if (const int rings = nvlink_rings(nvlink, gpus_); rings > 0)
    return over_nvlinks(rings, static_cast<double>(rings));
  // Along a chain all bytes cross each link once in each direction: 2 * (p - 1) / p times the rate of a ring.
  if (!nvlink_chain(nvlink, gpus_)) return std::nullopt;
  return over_nvlinks(1, 2 * (1 - 1.0 / static_cast<double>(gpus_)));
}

Rings Topology::rings() const {
  if (gpus_ == 1) return {};
  if (const auto over_nvlink = nvlink_only()) return *over_nvlink;
  return single_ring();
}

std::vector<Flow> Topology::ring_flows(bool staged) const {
  std::vector<Flow> flows;
  for (int g = 0; g < gpus_; ++g) {
    const int next = (g + 1) % gpus_;
    if (nvlinks_between(machine_, g, next) == 0) flows.push_back(between(g, next, staged));
  }
  return flows;
}

Rings Topology::single_ring() const {
  if (gpus_ == 1) return {};
  std::vector<Flow> flows = ring_flows(false);
  if (flows.empty()) {
    int links = std::numeric_limits<int>::max();  // of the pair that fewest join
    for (int g = 0; g < gpus_; ++g) links = std::min(links, nvlinks_between(machine_, g, (g + 1) % gpus_));
    const LinkSpec& link = machine_.nvlink->link;
    return {.bandwidth = achievable(link) * static_cast<double>(links),
            .cost = link.collective,
            .nvlink = true,
            .traffic = {}};
  }
  bool staged = false;
  for (int g = 0; g < gpus_; ++g) staged = staged || !are_peers(machine_, g, (g + 1) % gpus_);
  const bool one_port = std::all_of(slots_.begin(), slots_.end(),
                                    [&](const Slot& slot) { return slot.port == slots_.front().port; });
  Traffic traffic = shared(std::move(flows));
  const BytesPerSecond bandwidth = traffic.slowest * (one_port || staged ? 1 : slot_.across_ports);
  Rings rings{
      .bandwidth = bandwidth, .cost = slot_.collective, .staged = staged, .traffic = std::move(traffic)};
  if (staged) {
    CollectiveCost& cost = rings.cost;
    cost.step = std::max(cost.step, kStagedStep);
    if (cost.simple_step > Seconds(0)) cost.simple_step = std::max(cost.simple_step, kStagedStep);
    return rings;
  }
  // NCCL stages where peers reach one another more slowly, as over the link between sockets.
  Traffic through_host = shared(ring_flows(true));
  if (through_host.slowest > rings.bandwidth) {
    rings.bandwidth = through_host.slowest;
    rings.traffic = std::move(through_host);
  }
  return rings;
}

std::vector<BytesPerSecond> Topology::load(const Traffic& traffic, BytesPerSecond rate) const {
  std::vector<BytesPerSecond> loads(links_.size());
  for (const Flow& flow : traffic.flows) {
    for (const LinkIndex link : flow.links) loads[static_cast<std::size_t>(link)] += rate;
  }
  return loads;
}

}  // namespace tbdsim
