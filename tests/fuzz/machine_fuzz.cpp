// A machine that is accepted has a root port for each GPU and symmetric links.
#include <algorithm>

#include "hwspecs/machine_spec.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tbdsim;
  static const Catalog catalog = Catalog::from(TBDSIM_SOURCE_DIR);
  constexpr int kSomeGpus = 32;
  const fuzz::MemoryFile file(data, size);
  return fuzz::run([&] {
    const MachineSpec machine = read_machine(file.path(), catalog);
    fuzz::require(host_memory_bandwidth(machine).si() > 0);
    for (int a = 0; a < std::min(machine.gpus, kSomeGpus); ++a) {
      fuzz::require(root_port_of(machine, a).socket < machine.sockets);
      for (int b = 0; b < a; ++b) {
        fuzz::require(nvlinks_between(machine, a, b) == nvlinks_between(machine, b, a));
        fuzz::require(are_peers(machine, a, b) == are_peers(machine, b, a));
      }
    }
  });
}
