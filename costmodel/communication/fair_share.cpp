#include "costmodel/communication/fair_share.h"

#include <algorithm>
#include <limits>

namespace tbdsim {
namespace {

// Capacity left on each link, in bytes a second, and the number of growing transfers that load it.
struct Filling {
  std::vector<double> left;
  std::vector<int> growing;

  // The link that is full first, and the growth of each rate until then; -1: no transfer grows.
  [[nodiscard]] std::pair<int, double> next_full() const {
    int full = -1;
    double growth = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (growing[i] == 0) continue;
      const double until = std::max(left[i], 0.0) / growing[i];
      if (until < growth) {
        full = static_cast<int>(i);
        growth = until;
      }
    }
    return {full, growth};
  }
};

}  // namespace

std::vector<BytesPerSecond> max_min_fair(std::span<const BytesPerSecond> capacities,
                                         std::span<const Flow> flows) {
  std::vector<BytesPerSecond> rates(flows.size(), BytesPerSecond(std::numeric_limits<double>::infinity()));
  Filling filling{{}, std::vector<int>(capacities.size())};
  for (const BytesPerSecond& capacity : capacities) filling.left.push_back(capacity.si());
  for (const Flow& flow : flows) {
    for (const LinkIndex link : flow.links) ++filling.growing[static_cast<std::size_t>(link)];
  }
  std::vector<bool> limited(flows.size());
  double level = 0;
  for (;;) {
    const auto [full, growth] = filling.next_full();
    if (full < 0) return rates;
    level += growth;
    for (std::size_t i = 0; i < capacities.size(); ++i) filling.left[i] -= growth * filling.growing[i];
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::vector<LinkIndex>& links = flows[f].links;
      if (limited[f] || std::find(links.begin(), links.end(), full) == links.end()) continue;
      limited[f] = true;
      rates[f] = BytesPerSecond(level);
      for (const LinkIndex link : links) --filling.growing[static_cast<std::size_t>(link)];
    }
  }
}

}  // namespace tbdsim
