// A link that carries data: a PCIe slot, an NVLink, a network cable. One YAML file for each in
// hwspecs/links/.
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

// Kinds of links: between a GPU and its host, between GPUs, between machines, between the sockets of a
// machine.
enum class LinkKind { pcie, nvlink, network, socket };
inline constexpr std::array<std::string_view, 4> kLinkKindNames = {"pcie", "nvlink", "network", "socket"};

// Cost of collective operations (NCCL's) whose rings have this link as the slowest; fitted to measured curves
// by `tbd-calibrate fit-communication`. All-reduce of S bytes over p ranks takes, in seconds,
//
//   launch + 2 * (p - 1) * step + 2 * (p - 1) / p * S / (efficiency * B) + root * sqrt(S / 1 MiB)
//
// with B the bandwidth of the rings in B/s. The last term stands for the filling of pipelines and for
// protocols that change with the size.
struct CollectiveCost {
  Seconds launch;
  Seconds step;
  double efficiency =
      1;         // share of `achievable`, the rate of plain copies; slightly above 1 where that is low
  Seconds root;  // at 1 MiB
  double in_switch = 0;  // share of a GPU's bandwidth that in-switch reductions reach; 0: the switch has none
  // Step latency of NCCL's protocol Simple, where it is distinguished from LL (over PCI Express): `step` is
  // then that of LL, which halves the bandwidth, as every eight bytes hold four of a flag. 0: one protocol
  // for all sizes; `root` covers the difference.
  Seconds simple_step{};
};

// A full-duplex link: both directions have the full bandwidth at the same time. A transfer of b bytes alone
// on the link takes latency + b / achievable(link) seconds; transfers in one direction share its bandwidth. A
// route over several links has the sum of their latencies and the smallest of their bandwidths.
struct LinkSpec {
  std::filesystem::path file;  // it was read from, also where only a rate was given
  std::string name;            // the file's stem, or the rate
  std::string title;           // "PCI Express 3.0 x16"
  LinkKind kind = LinkKind::pcie;
  BytesPerSecond bandwidth;  // of one link in one direction, without the line code
  double efficiency = 1;     // share of it that long transfers reach (headers, flow control), up to 1
  Seconds latency;           // half a round trip of the shortest message
  // Share of a slot's bandwidth in rings over more than one root port, and over more than one socket.
  double across_ports = 1, across_sockets = 1;
  // Bytes a second that all ranks of a machine together send in an all-reduce staged in host memory, if this
  // is the link of their slots or of the cards' buses: number of ranks times bus bandwidth, as NCCL's tests
  // define it. 0: no limit but those of the links.
  BytesPerSecond staged{};
  CollectiveCost collective;
  Sources sources;
};

// The bandwidth of a long transfer in one direction.
[[nodiscard]] inline BytesPerSecond achievable(const LinkSpec& link) {
  return link.bandwidth * link.efficiency;
}

// Throws UsageError or SpecError. Changes of "link" are of every link ("link.latency=x2"), of one by its name
// ("link.pcie3.bandwidth=10 GB/s") or of all of a kind ("link.network.bandwidth=10 Gbit/s").
[[nodiscard]] LinkSpec read_link(const std::filesystem::path& file, const SpecChanges& changes = {});

// The kind of the catalogue's link of that name; none where the catalogue has no such link. Throws UsageError
// or SpecError for a file that cannot be read.
[[nodiscard]] std::optional<LinkKind> kind_of_link(const std::string& name, const Catalog& catalog);

// The catalogue's link that gives the other properties of a network of which only the rate is given.
inline constexpr std::string_view kNetworkLike = "ethernet_25g";

// True if the text is a rate, well-formed or not, rather than a link's name or a file.
[[nodiscard]] bool is_rate(std::string_view text);

// The network that a text names: a link of the catalogue, a file, or a rate, "25 Gbit/s" or "25Gbit/s", for
// Ethernet of that rate. Changes apply to each of these. Throws UsageError, with "did you mean".
[[nodiscard]] LinkSpec network_named(const std::string& text, const Catalog& catalog,
                                     const SpecChanges& changes = {});

// The link that the node names; SpecError where it is of another kind.
[[nodiscard]] LinkSpec link_named(const SpecNode& node, LinkKind kind, const Catalog& catalog,
                                  const SpecChanges& changes = {});

}  // namespace tbdsim
