// A machine with GPUs, and the cluster it may be part of. One YAML file in hwspecs/machines/.
//
//   network -- NIC --+                       +-- GPU -- NVLink -- GPU
//                    |                       |
//   socket -- root port [link] -- (switch) --+-- GPU
//     |
//   socket link -- socket -- root port ...
//
// GPUs below one root port share its link to the socket; several of them are connected by a switch, whose
// traffic does not use that link. A GPU's slot has the smaller bandwidth of its `bus` and the port's link, or
// what the port's `slot` says of those below its switch.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/catalog.h"
#include "hwspecs/cpu_spec.h"
#include "hwspecs/link_spec.h"

namespace tbdsim {

struct RootPort {
  LinkSpec link;
  std::optional<LinkSpec> slot;  // between GPUs, adapters and their switch, where that is another link
  int socket = 0;
  std::vector<int> gpus;  // at least one

  [[nodiscard]] const LinkSpec& of_slots() const { return slot ? *slot : link; }
};

// Reach of peer access over PCIe, without staging in host memory: none, below one switch, below one socket,
// the whole machine. GPUs connected by NVLink always have it.
enum class PeerAccess { none, switch_only, socket, machine };
inline constexpr std::array<std::string_view, 4> kPeerAccessNames = {"none", "switch", "socket", "machine"};

struct NvLinkPair {
  int a = 0;
  int b = 0;
  int links = 0;
};

// NVLinks between pairs of GPUs, or to a switch over which every GPU can use all its links with any other.
struct NvLink {
  LinkSpec link;
  std::vector<NvLinkPair> pairs;
  int to_switch = 0;  // links from each GPU to the switch
};

struct SocketLink {
  LinkSpec link;
  int count = 1;
};

struct Network {
  LinkSpec link;
  // The root port each NIC is below, one twice where two are; empty: one NIC on a port of its own, socket 0.
  std::vector<int> below;
};

struct MachineSpec {
  std::string name;  // the file's stem
  std::string title;
  std::string gpu;  // a name or path, as the catalogue finds it
  int gpus = 0;
  CpuSpec cpu;
  int sockets = 1;
  Bytes memory_size;
  std::vector<RootPort> root_ports;       // each GPU is below exactly one
  std::optional<SocketLink> socket_link;  // where there are several sockets
  PeerAccess peer_access = PeerAccess::none;
  std::optional<NvLink> nvlink;
  std::vector<Network> networks;  // to others of its sort, no link twice; the first unless one is named
  std::optional<int> machines;    // number of machines; empty: any number where there is a network
  Sources sources;
};

// Reads and checks a file; its CPU and links are those of the catalogue, and it has no more NVLinks than its
// GPU. Throws UsageError or SpecError. Changes are those of "machine", and of the "cpu", "link" and "gpu"
// that it names.
[[nodiscard]] MachineSpec read_machine(const std::filesystem::path& file, const Catalog& catalog,
                                       const SpecChanges& changes = {});

// The root port a GPU is below.
[[nodiscard]] const RootPort& root_port_of(const MachineSpec& machine, int gpu);

// True if copies between two GPUs need not be staged in host memory.
[[nodiscard]] bool are_peers(const MachineSpec& machine, int a, int b);

// Number of NVLinks between two GPUs, directly or through the switch.
[[nodiscard]] int nvlinks_between(const MachineSpec& machine, int a, int b);

// Bandwidth of host memory, of all sockets together.
[[nodiscard]] BytesPerSecond host_memory_bandwidth(const MachineSpec& machine);

}  // namespace tbdsim
