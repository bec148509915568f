// Facts that a tool says of how the GPUs of a machine are joined.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/quantity.h"
#include "hwspecs/machine_spec.h"

namespace tbdsim {

struct GpuSlot {
  std::string gpu{};  // as the tool names it, or empty
  int port = 0;       // number of the root port it is below
  int socket = 0;
};

struct MachineFacts {
  std::string tool{};  // "nvidia-smi topo -m": a source names it
  std::string title{};
  std::vector<GpuSlot> slots{};       // of GPU 0, 1, ...
  std::vector<NvLinkPair> nvlinks{};  // `links` of each pair; through a switch each pair has those of a GPU
  // Bytes per second over NVLink of each pair, one direction, where the tool counts no links.
  std::vector<BytesPerSecond> nvlink_rates{};
  int sockets = 1;
  std::string sockets_by{};  // an estimate of them, as a source names it; empty where the tool says them
  bool pcie_pairs = false;   // some pair of GPUs is joined below one root complex
  std::string cpu{};         // as the tool names it, or empty
  int cores = 0;             // of each socket, 0 where the tool counts none
  std::optional<Bytes> memory_size{};
};

// The machine of a matrix of `nvidia-smi topo -m`, of a tree of `lspci -tv`, of `lstopo --of xml`. Throw
// SpecError for text that names no GPU, a matrix that is not square or not symmetric.
[[nodiscard]] MachineFacts read_topology_matrix(std::string_view text, const std::string& file);
[[nodiscard]] MachineFacts read_lspci_tree(std::string_view text, const std::string& file);
[[nodiscard]] MachineFacts read_hwloc_xml(std::string_view text, const std::string& file);

}  // namespace tbdsim
