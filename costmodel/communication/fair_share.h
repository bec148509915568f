// Rates of transfers that share links, by max-min fairness (progressive filling), which flow control of PCIe,
// NVLink and switched networks approximates: all rates grow alike until a link is full; transfers over it
// keep their rate and the others grow on.
#pragma once

#include <span>
#include <vector>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

// A link in one direction.
using LinkIndex = int;

// A transfer. A link stands in its route as often as it is loaded: twice for a memory that is written and
// read again.
struct Flow {
  std::vector<LinkIndex> links;
};

// The rate of each flow. A flow over no link gets an infinite rate. Capacities are positive.
[[nodiscard]] std::vector<BytesPerSecond> max_min_fair(std::span<const BytesPerSecond> capacities,
                                                       std::span<const Flow> flows);

}  // namespace tbdsim
