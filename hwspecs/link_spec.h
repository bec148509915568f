// What data travels over: a PCIe slot, an NVLink, a network cable. One YAML file a link in hwspecs/links/.
#pragma once

#include <filesystem>
#include <string>

#include "hwspecs/base/quantity.h"
#include "hwspecs/base/sources.h"

namespace tbdsim {

// Every link is full duplex: what is said of one direction holds for the other at the same time. A transfer
// of b bytes that has the link to itself takes latency + b / achievable(link); transfers that share a
// direction share its bandwidth. A route over several links has the sum of their latencies and the least
// bandwidth.
struct LinkSpec {
  std::string name;          // the file's stem
  std::string title;         // "PCI Express 3.0 x16"
  BytesPerSecond bandwidth;  // raw, of one link in one direction, line code taken off
  double efficiency = 1;     // the part of it that long transfers reach (headers, flow control), up to 1
  Seconds latency;           // half a round trip of the shortest message
  Sources sources;
};

// What a long transfer gets in one direction.
[[nodiscard]] inline BytesPerSecond achievable(const LinkSpec& link) {
  return link.bandwidth * link.efficiency;
}

// Throws UsageError or SpecError.
[[nodiscard]] LinkSpec read_link(const std::filesystem::path& file);

}  // namespace tbdsim
