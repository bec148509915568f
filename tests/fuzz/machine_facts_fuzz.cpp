// How tools print the topology of a machine: nvidia-smi topo -m, lspci -tv, hwloc.
#include "simulate/import/machine_facts.h"
#include "tests/fuzz/memory_file.h"

namespace {
using namespace tbdsim;

void check(const MachineFacts& facts) {
  const int gpus = static_cast<int>(facts.slots.size());
  fuzz::require(gpus > 0 && facts.sockets > 0);
  for (const GpuSlot& slot : facts.slots)
    fuzz::require(slot.port >= 0 && slot.socket >= 0 && slot.socket < facts.sockets);
  for (const NvLinkPair& pair : facts.nvlinks) fuzz::require(0 <= pair.a && pair.a < pair.b && pair.b < gpus);
  fuzz::require(facts.nvlink_rates.empty() || facts.nvlink_rates.size() == facts.nvlinks.size());
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto read : {read_topology_matrix, read_lspci_tree, read_hwloc_xml})
    (void)fuzz::run([&] { check(read(text, "fuzz")); });
  return 0;
}
