// The links of a machine, and the bandwidths of transfers between GPUs, host and network that run at the same
// time. With n GPUs in use these are GPUs 0 to n - 1.
//
//   GPU slot up, down -- root port up, down -- socket's memory -- link to other sockets -- network cards
//   NVLinks between pairs, or each GPU's links to a switch
//
// A copy between peers crosses both slots, and both root ports where these differ; a staged copy also crosses
// host memory twice, and all staged copies together have a limit (LinkSpec::staged). Concurrent transfers
// share links by max-min fairness (fair_share.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/communication/all_reduce.h"
#include "costmodel/communication/fair_share.h"
#include "hwspecs/gpu_spec.h"
#include "hwspecs/machine_spec.h"

namespace tbdsim {

struct TopologyLink {
  std::string name;  // "GPU 0, slot, up"
  BytesPerSecond capacity;
};

// Transfers that run at the same time, and the rate of the slowest.
struct Traffic {
  std::vector<Flow> flows;
  BytesPerSecond slowest;  // of them
};

// Rings over NVLinks or PCI Express in which every rank sends to the next.
struct Rings {
  int channels = 1;          // rings in parallel
  BytesPerSecond bandwidth;  // sum over the rings, into each rank
  CollectiveCost cost;
  bool nvlink = false;  // over NVLinks alone
  bool staged = false;  // copies are staged in host memory
  Traffic traffic;      // of one; empty over NVLinks
};

class Topology {
 public:
  // A slot has the smaller bandwidth of the GPU's bus and the root port's slots (RootPort::slot). Throws
  // UsageError for more GPUs than the machine has.
  Topology(const MachineSpec& machine, const GpuSpec& gpu, int gpus);

  [[nodiscard]] int gpus() const { return gpus_; }
  [[nodiscard]] const std::vector<TopologyLink>& links() const { return links_; }

  // Bytes a second over each GPU's slot in one direction.
  [[nodiscard]] BytesPerSecond slot_rate() const { return achievable(slot_); }

  // Concurrent transfers of every GPU to host memory, or from it.
  [[nodiscard]] Traffic to_host() const;
  [[nodiscard]] Traffic from_host() const;
  [[nodiscard]] Traffic to_first_gpu() const;
  [[nodiscard]] Traffic from_first_gpu() const;
  // Concurrent transfers of each GPU to each other one, as with parameter servers sharded over the GPUs.
  [[nodiscard]] Traffic all_to_all() const;
  [[nodiscard]] Rings rings() const;
  // The only ring of NCCL 1: in the order of the slots, over NVLinks or PCI Express between neighbors.
  [[nodiscard]] Rings single_ring() const;

  // Bytes per second over each link while each flow of the traffic moves at `rate`.
  [[nodiscard]] std::vector<BytesPerSecond> load(const Traffic& traffic, BytesPerSecond rate) const;

 private:
  LinkIndex add(std::string name, BytesPerSecond capacity);
  void add_host_links(const GpuSpec& gpu);
  void limit_staged(BytesPerSecond bus_bandwidth);
  void add_nvlinks();
  // A copy; `staged`: through host memory, also where the two are peers.
  [[nodiscard]] Flow between(int a, int b, bool staged = false) const;
  // A copy by the driver's copy engines, which a buffer in host memory takes in turns where the two are no
  // peers.
  [[nodiscard]] Flow copy_between(int a, int b) const;
  // The copies of a ring in the order of the slots that go over PCI Express.
  [[nodiscard]] std::vector<Flow> ring_flows(bool staged) const;
  void cross_sockets(std::vector<LinkIndex>& flow, int from, int to) const;
  [[nodiscard]] std::optional<Rings> nvlink_only() const;
  [[nodiscard]] Traffic shared(std::vector<Flow> flows) const;

  const MachineSpec& machine_;
  LinkSpec slot_;  // what the slots are run as
  int gpus_;
  std::vector<TopologyLink> links_;
  struct Slot {
    int port = 0, socket = 0;
    LinkIndex up = 0, down = 0;  // of the GPU
    LinkIndex port_up = 0, port_down = 0;
    LinkIndex across = 0, staged = 0;  // limits of this GPU's copies across sockets and through host memory
    LinkIndex copies_up = 0, copies_down = 0;  // the latter of copies by the driver
    LinkIndex switch_up = -1, switch_down = -1;
  };
  std::vector<Slot> slots_;
  LinkIndex staged_ = -1;                           // limit of all staged copies together; -1: none
  std::vector<LinkIndex> memory_;                   // of each socket
  std::vector<std::vector<LinkIndex>> to_socket_;   // from one to another
  std::map<std::pair<int, int>, LinkIndex> wires_;  // NVLinks from a GPU straight to another
};

}  // namespace tbdsim
