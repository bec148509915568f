#include "hwspecs/machine_spec.h"

#include <algorithm>
#include <cassert>

namespace tbdsim {

const RootPort& root_port_of(const MachineSpec& machine, int gpu) {
  for (const RootPort& port : machine.root_ports) {
    if (std::find(port.gpus.begin(), port.gpus.end(), gpu) != port.gpus.end()) return port;
  }
  assert(false && "a GPU the machine does not have");
  return machine.root_ports.front();
}

bool are_peers(const MachineSpec& machine, int a, int b) {
  if (nvlinks_between(machine, a, b) > 0) return true;
  const RootPort& port_a = root_port_of(machine, a);
  const RootPort& port_b = root_port_of(machine, b);
  switch (machine.peer_access) {
    case PeerAccess::none:
      return false;
    case PeerAccess::switch_only:
      return &port_a == &port_b;
    case PeerAccess::socket:
      return port_a.socket == port_b.socket;
    case PeerAccess::machine:
      return true;
  }
  return false;
}

int nvlinks_between(const MachineSpec& machine, int a, int b) {
  if (!machine.nvlink || a == b) return 0;
  for (const NvLinkPair& pair : machine.nvlink->pairs) {
    if ((pair.a == a && pair.b == b) || (pair.a == b && pair.b == a)) return pair.links;
  }
  return machine.nvlink->to_switch;
}

BytesPerSecond host_memory_bandwidth(const MachineSpec& machine) {
  return machine.cpu.memory_bandwidth * static_cast<double>(machine.sockets);
}

}  // namespace tbdsim
