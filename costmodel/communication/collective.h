// The time of a collective of NCCL over ranks in domains that NVLink or PCI Express joins, with a network
// between the domains. Within a domain the constants are those of the links' files, fitted to measured
// all-reduces; between domains NCCL's own. The fastest algorithm and protocol count, as NCCL chooses
// (NVIDIA/nccl@5067397c src/graph/tuning.cc, ncclTopoTuneModel). Errors: docs/model/clusters.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "costmodel/communication/all_reduce.h"

namespace tbdsim {

enum class Collective { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send };
inline constexpr std::array<std::string_view, 6> kCollectiveNames = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"};

// Ranks of one communicator, with what each can use while all such communicators work at the same time.
struct CommGroup {
  std::int64_t inner = 1;   // ranks in a domain
  std::int64_t outer = 1;   // domains
  BytesPerSecond within;    // that a rank sends its neighbour in the domain's rings
  BytesPerSecond switched;  // that a rank sends into a switch that reduces; 0: there is none
  BytesPerSecond network;   // that a rank sends out of its domain
  CollectiveCost cost;      // of the links within the domain

  [[nodiscard]] std::int64_t ranks() const { return inner * outer; }
};

// Seconds for `bytes`: what each rank has before an all-reduce or a reduce-scatter, after an all-gather or a
// broadcast; what it gives away in an all-to-all, its own part included; a message. 0 for one rank.
//
//   p ranks, q domains, x passes (2 of an all-reduce, else 1), B the smaller of `within` and what `inner`
//   ranks send into the network; launch, a, root: the link's CollectiveCost; n_o = x (q - 1) steps between
//   domains, n_i = x (p - 1) - n_o steps within; S bytes
//
//   ring    launch + n_i a + n_o a_o + (x (p - 1) + o) / p * S / (e B) + x / 2 * root * sqrt(S / 1 MiB)
//   tree    all-reduce: launch + 2 (inner - 1) a + 2 log2(q) t_o + 2 / 0.92 * S / (e B) + root ...
//   switch  all-reduce of one domain: as AllReduceAlgorithm::in_switch
//   pairs   all-to-all: 1.5 launch + the longer of what stays in the domain and what leaves it
//
//   o = 0.45 of S / p: the part that a rank copies within its own memory, of operations out of place (fitted
//   to all-gathers and reduce-scatters of 2, 4 and 8 A100, H100 and B200: aiconfigurator, NCCL 2.27 to 2.29)
//   e, a_o, t_o: the protocol's share of the bandwidth and steps between domains, in us:
//
//     protocol   e      ring a_o   tree t_o
//     LL         0.50    2.7        5
//     LL128      0.92    4          8.5
//     Simple     1      14         14
[[nodiscard]] Seconds collective_time(Collective collective, const CommGroup& group, Bytes bytes);

}  // namespace tbdsim
