// What data travels over: a PCIe slot, an NVLink, a network cable. One YAML file a link in hwspecs/links/.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "hwspecs/base/catalog.h"
#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"
#include "hwspecs/base/spec_change.h"

namespace tbdsim {

class SpecNode;

// What a link joins: a card and its host, GPUs, machines, the sockets of one.
enum class LinkKind { pcie, nvlink, network, socket };
inline constexpr std::array<std::string_view, 4> kLinkKindNames = {"pcie", "nvlink", "network", "socket"};

// What collective operations (NCCL's) cost on top where this link is the narrowest of their rings; fitted to
// measured curves by `tbd-calibrate fit-communication`. All-reduce of S bytes over p ranks:
//
//   launch + 2 (p - 1) step + 2 (p - 1) / p S / (efficiency x bandwidth of the rings) + root sqrt(S / 1 MiB)
//
// The last term stands for pipelines that fill and protocols that change with the size.
struct CollectiveCost {
  Seconds launch;
  Seconds step;
  double efficiency = 1;  // of what `achievable` says for plain copies; slightly above 1 where that is low
  Seconds root;           // at 1 MiB
  double in_switch = 0;   // part of a GPU's bandwidth that reductions inside the switch reach; 0: it has none
  // Where two protocols are told apart (NCCL over PCI Express): `step` is that of one whose every eight bytes
  // carry four of a flag, which halves the bandwidth (LL), this that of another that carries data alone
  // (Simple). 0: one for all sizes, `root` stands for what is between.
  Seconds simple_step{};
};

// Every link is full duplex: what is said of one direction holds for the other at the same time. A transfer
// of b bytes that has the link to itself takes latency + b / achievable(link); transfers that share a
// direction share its bandwidth. A route over several links has the sum of their latencies and the least
// bandwidth.
struct LinkSpec {
  std::filesystem::path file;  // read from, also where only a rate was given
  std::string name;            // the file's stem, or the rate
  std::string title;           // "PCI Express 3.0 x16"
  LinkKind kind = LinkKind::pcie;
  BytesPerSecond bandwidth;  // raw, of one link in one direction, line code taken off
  double efficiency = 1;     // the part of it that long transfers reach (headers, flow control), up to 1
  Seconds latency;           // half a round trip of the shortest message
  // Of slots: what peers reach of it in a ring over more than one root port, and over more than one socket.
  double across_ports = 1, across_sockets = 1;
  CollectiveCost collective;
  Sources sources;
};

// What a long transfer gets in one direction.
[[nodiscard]] inline BytesPerSecond achievable(const LinkSpec& link) {
  return link.bandwidth * link.efficiency;
}

// Throws UsageError or SpecError. Changes of "link" are of every link ("link.latency=x2"), of one by its name
// ("link.pcie3.bandwidth=10 GB/s") or of all of a kind ("link.network.bandwidth=10 Gbit/s").
[[nodiscard]] LinkSpec read_link(const std::filesystem::path& file, const SpecChanges& changes = {});

// The kind of the catalogue's link of that name; none where the catalogue has no such link. Throws UsageError
// or SpecError for a file that cannot be read.
[[nodiscard]] std::optional<LinkKind> kind_of_link(const std::string& name, const Catalog& catalog);

// What is assumed of a network of which only the rate is known.
inline constexpr std::string_view kNetworkLike = "ethernet_25g";

// The text means a rate, well written or not, no link's name and no file.
[[nodiscard]] bool is_rate(std::string_view text);

// The network that a text names: a link of the catalogue, a file, or a rate, "25 Gbit/s" or "25Gbit/s":
// Ethernet of that rate, which changes find in its place. Throws UsageError, with "did you mean".
[[nodiscard]] LinkSpec network_named(const std::string& text, const Catalog& catalog,
                                     const SpecChanges& changes = {});

// The link that the node names; SpecError where it is of another kind.
[[nodiscard]] LinkSpec link_named(const SpecNode& node, LinkKind kind, const Catalog& catalog,
                                  const SpecChanges& changes = {});

}  // namespace tbdsim
