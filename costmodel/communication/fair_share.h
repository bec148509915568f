// Transfers that share links: max-min fairness, as flow control of PCIe, NVLink and switched networks comes
// near to. All transfers grow alike until a link is full; those over it stay, the others grow on.
#pragma once

#include <span>
#include <vector>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

// A link in one direction.
using LinkIndex = int;

// A transfer loads each link of its route so many times: 2 where it is written to a memory and read again.
struct Flow {
  std::vector<LinkIndex> links;
};

// The rate of each flow. A flow over no link gets an infinite rate. Capacities are positive.
[[nodiscard]] std::vector<BytesPerSecond> max_min_fair(std::span<const BytesPerSecond> capacities,
                                                       std::span<const Flow> flows);

}  // namespace tbdsim
