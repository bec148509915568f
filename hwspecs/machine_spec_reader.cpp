#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "hwspecs/base/catalog_reference.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"

namespace tbdsim {
namespace {

constexpr std::string_view kSourcedKeys[] = {"gpus",       "sockets",     "memory_size",
                                             "root_ports", "socket_link", "peer_access",
                                             "nvlink",     "networks",    "machines"};
constexpr int kMostGpus = 1000;
constexpr int kMostSockets = 64;  // a rack whose GPUs NVLink joins has 36
constexpr int kMostLinks = 1000;  // of a GPU or between sockets
constexpr int kMostMachines = 1'000'000;

// The changes that affect a GPU's NVLinks; others may be meant for other GPUs than the machine's.
SpecChanges of_nvlinks(const SpecChanges& changes) {
  SpecChanges some;
  for (const SpecChange& change : changes) {
    if (change.spec == "link" || (change.spec == "gpu" && change.path.front() == "nvlink"))
      some.push_back(change);
  }
  return some;
}

// Reads one file, key by key.
class MachineReader {
 public:
  MachineReader(const Catalog& catalog, const SpecChanges& changes) : catalog_(catalog), changes_(changes) {}

  MachineSpec read(const SpecNode& node, std::string name) {
    machine_.name = std::move(name);
    node.map([&](SpecMap& m) {
      machine_.title = m.at("title").text();
      read_host(m);
      read_root_ports(m.at("root_ports"));
      read_socket_link(m);
      machine_.peer_access = static_cast<PeerAccess>(m.at("peer_access").one_of(kPeerAccessNames));
      if (const auto nvlink = m.find("nvlink")) read_nvlink(*nvlink);
      read_networks(m);
      machine_.sources = read_sources(m, kSourcedKeys);
    });
    return std::move(machine_);
  }

 private:
  LinkSpec link(const SpecNode& node, LinkKind kind) const {
    return link_named(node, kind, catalog_, changes_);
  }
  int gpu(const SpecNode& node) const { return static_cast<int>(node.count(0, machine_.gpus - 1)); }

  void read_host(SpecMap& m) {
    const SpecNode gpu = m.at("gpu");
    gpu_file_ = file_named(gpu, Kind::gpu, catalog_);
    machine_.gpu = is_path(gpu.text()) ? gpu_file_.string() : gpu.text();
    machine_.gpus = static_cast<int>(m.at("gpus").count(1, kMostGpus));
    machine_.cpu = read_cpu(file_named(m.at("cpu"), Kind::cpu, catalog_), changes_);
    machine_.sockets = static_cast<int>(m.at("sockets").count(1, kMostSockets));
    machine_.memory_size = m.at("memory_size").quantity<Bytes>();
  }

  void read_root_ports(const SpecNode& node) {
    for (const SpecNode& port : node.list()) read_root_port(port);
    for (int number = 0; number < machine_.gpus; ++number) {
      if (!is_below(number, {})) {
        node.fail(fmt::format("GPU {} is below no root port; expected each of 0 to {} below one", number,
                              machine_.gpus - 1));
      }
    }
  }

  void read_root_port(const SpecNode& node) {
    node.map([&](SpecMap& m) {
      RootPort port;
      port.link = link(m.at("link"), LinkKind::pcie);
      if (const auto slot = m.find("slot")) port.slot = link(*slot, LinkKind::pcie);
      port.socket = static_cast<int>(m.at("socket").count(0, machine_.sockets - 1));
      const SpecNode gpus = m.at("gpus");
      for (const SpecNode& index : gpus.list()) {
        const int number = gpu(index);
        if (is_below(number, port)) index.fail(fmt::format("GPU {} is below a root port already", number));
        port.gpus.push_back(number);
      }
      if (port.gpus.empty()) gpus.fail("names no GPU; expected those below this root port");
      machine_.root_ports.push_back(std::move(port));
    });
  }

  bool is_below(int number, const RootPort& newest) const {
    const auto holds = [&](const RootPort& port) {
      return std::find(port.gpus.begin(), port.gpus.end(), number) != port.gpus.end();
    };
    return holds(newest) || std::any_of(machine_.root_ports.begin(), machine_.root_ports.end(), holds);
  }

  void read_socket_link(SpecMap& m) {
    if (machine_.sockets == 1) {
      if (const auto needless = m.find("socket_link")) needless->fail("one socket has no link to another");
      return;
    }
    m.at("socket_link").map([&](SpecMap& s) {
      machine_.socket_link = {.link = link(s.at("link"), LinkKind::socket),
                              .count = static_cast<int>(s.at("count").count(1, kMostLinks))};
    });
  }

  void read_nvlink(const SpecNode& node) {
    NvLink nvlink;
    const GpuSpec gpu = read_gpu(gpu_file_, catalog_, of_nvlinks(changes_));
    if (!gpu.nvlink)
      node.fail(
          fmt::format("{} has no NVLink; expected a machine without, or in the GPU's file as "
                      "nvlink: {{link: nvlink4, count: 18}}",
                      gpu.title));
    node.map([&](SpecMap& m) {
      nvlink.link = link(m.at("link"), LinkKind::nvlink);
      const auto pairs = m.find("pairs");
      const auto to_switch = m.find("to_switch");
      m.reject_unknown_keys();  // a misspelt one is to blame for a missing one
      if (pairs.has_value() == to_switch.has_value()) {
        node.fail("expected either 'pairs: [[GPU, GPU, links], ...]' or 'to_switch: links of each GPU'");
      }
      if (to_switch) nvlink.to_switch = static_cast<int>(to_switch->count(1, gpu.nvlink->count));
      if (pairs) nvlink.pairs = read_pairs(*pairs, gpu);
    });
    machine_.nvlink = std::move(nvlink);
  }

  std::vector<NvLinkPair> read_pairs(const SpecNode& node, const GpuSpec& gpu) const {
    std::vector<NvLinkPair> pairs;
    std::set<std::pair<int, int>> joined;
    std::map<int, int> links;  // that a GPU uses
    for (const SpecNode& item : node.list()) {
      const NvLinkPair pair = pairs.emplace_back(read_pair(item, joined));
      for (const int end : {pair.a, pair.b}) {
        if ((links[end] += pair.links) <= gpu.nvlink->count) continue;
        item.fail(fmt::format("GPU {} uses {} NVLinks with these; expected at most the {} of {}", end,
                              links[end], gpu.nvlink->count, gpu.title));
      }
    }
    if (pairs.empty()) node.fail("joins no GPUs; expected [[GPU, GPU, links], ...]");
    return pairs;
  }

  NvLinkPair read_pair(const SpecNode& node, std::set<std::pair<int, int>>& joined) const {
    const std::vector<SpecNode> items = node.list();
    if (items.size() != 3) node.fail("is no list of three; expected [GPU, GPU, links]");
    const NvLinkPair pair{gpu(items[0]), gpu(items[1]), static_cast<int>(items[2].count(1, kMostLinks))};
    if (pair.a == pair.b) node.fail(fmt::format("joins GPU {} to itself; expected two GPUs", pair.a));
    if (!joined.insert(std::minmax(pair.a, pair.b)).second) {
      node.fail(fmt::format("GPUs {} and {} are a pair already; expected one entry", pair.a, pair.b));
    }
    return pair;
  }

  void read_networks(SpecMap& m) {
    if (const auto networks = m.find("networks")) {
      for (const SpecNode& node : networks->list()) read_network(node);
    }
    const auto machines = m.find("machines");
    if (!machines) return;
    machine_.machines = static_cast<int>(machines->count(1, kMostMachines));
    if (*machine_.machines > 1 && machine_.networks.empty()) {
      machines->fail(fmt::format("{} machines without a network; expected 'networks: [{{link: ...}}]'",
                                 *machine_.machines));
    }
  }

  void read_network(const SpecNode& node) {
    node.map([&](SpecMap& m) {
      Network network{.link = link(m.at("link"), LinkKind::network), .below = {}};
      for (const Network& other : machine_.networks) {
        if (other.link.name == network.link.name) {
          node.fail(fmt::format("a second network over {}; expected one", network.link.name));
        }
      }
      if (const auto below = m.find("below")) {
        const auto last = static_cast<std::int64_t>(machine_.root_ports.size()) - 1;
        for (const SpecNode& port : below->list()) {
          network.below.push_back(static_cast<int>(port.count(0, last)));
          require_slot_for(network.link, port, network.below.back());
        }
        if (network.below.empty()) below->fail("names no root port; expected that of each NIC");
      }
      machine_.networks.push_back(std::move(network));
    });
  }

  void require_slot_for(const LinkSpec& network, const SpecNode& port, int number) const {
    const LinkSpec& slot = machine_.root_ports[static_cast<std::size_t>(number)].of_slots();
    if (network.bandwidth <= slot.bandwidth) return;
    port.fail(
        fmt::format("{} carries {}, more than its slot ({}, {}); expected a slower card or a faster slot",
                    network.name, to_text(network.bandwidth), slot.name, to_text(slot.bandwidth)));
  }

  const Catalog& catalog_;
  const SpecChanges& changes_;
  MachineSpec machine_;
  std::filesystem::path gpu_file_;
};

}  // namespace

MachineSpec read_machine(const std::filesystem::path& file, const Catalog& catalog,
                         const SpecChanges& changes) {
  const std::string name = file.stem().string();
  const SpecTree tree = read_spec_file(file, changes_of(changes, "machine", name));
  return MachineReader(catalog, changes).read(SpecNode(tree), name);
}

}  // namespace tbdsim
