// The cost of a recurrent layer over its width, the number of its sequences: it never falls.
//
// Rates, tiles and residuals of measured calls differ between widths, so that formulas and calls may promise
// less time for more sequences. The kernels of a wider call can run a narrower one with part of their tiles
// empty. At the widths of kWidths a layer therefore takes the least time of all those from there on, and
// between two of them the time is a straight line.
#pragma once

#include <algorithm>
#include <array>

#include "costmodel/kernel_cost.h"

namespace tbdsim {

// The first and last width of each tile and of each rate of families/recurrent.h, and powers of two.
inline constexpr std::array<double, 14> kWidths{1,  2,  4,  8,   16,  17,  32,
                                                33, 64, 65, 128, 256, 512, 1024};

// The cost that is `share` of the way from a to b; its bound, provenance and algorithm are those of the nearer.
[[nodiscard]] inline KernelCost between(const KernelCost& a, const KernelCost& b, double share) {
  KernelCost cost = share < 0.5 ? a : b;
  for (Seconds KernelCost::*time :
       {&KernelCost::compute, &KernelCost::memory, &KernelCost::overhead, &KernelCost::total})
    cost.*time = a.*time * (1 - share) + b.*time * share;
  cost.residual = a.residual * (1 - share) + b.residual * share;
  cost.sd = std::max(a.sd, b.sd);
  return cost;
}

// The cost at a width of at least 1. `cost_at(width)`: by formula and residual; beyond the last of kWidths it
// is taken as it is.
template <class CostAt>
[[nodiscard]] KernelCost cost_by_width(double width, CostAt cost_at) {
  const auto* const above = std::lower_bound(kWidths.begin(), kWidths.end(), width);
  if (above == kWidths.end()) return cost_at(width);
  KernelCost least = cost_at(kWidths.back());
  const auto keep_faster = [&](double other) {
    const KernelCost cost = cost_at(other);
    if (cost.total < least.total) least = cost;
  };
  for (const auto* w = kWidths.end() - 1; w != above;) keep_faster(*--w);
  if (*above == width || above == kWidths.begin()) return least;
  const KernelCost at_above = least;
  const double below = *(above - 1);
  keep_faster(below);
  return between(least, at_above, (width - below) / (*above - below));
}

}  // namespace tbdsim
