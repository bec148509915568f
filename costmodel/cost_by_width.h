// The cost of a recurrent layer or GEMM over its width, the size that grows with the batch: it never falls.
//
// Rates, tiles and residuals of measured calls differ between widths, so that formulas and calls may promise
// less time for a wider call. Its kernels can run a narrower one with part of their tiles empty. At chosen
// widths a call therefore takes the least time of all those from there on, and between two of them the time
// is a straight line.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "costmodel/kernel_cost.h"

namespace tbdsim {

// Sequences: most measured calls have powers of two. Formulas and their tiles are not asked between them.
inline constexpr std::array<double, 11> kSequences{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
// Rows, columns, products or the depth of a GEMM, up to the widest tile.
inline constexpr std::array<double, 8> kGemmWidths{1, 2, 4, 8, 16, 32, 64, 128};

// The cost that is `share` of the way from a to b; its bound, provenance and algorithm are those of the
// nearer.
[[nodiscard]] inline KernelCost between(const KernelCost& a, const KernelCost& b, double share) {
  KernelCost cost = share < 0.5 ? a : b;
  for (Seconds KernelCost::*time :
       {&KernelCost::compute, &KernelCost::memory, &KernelCost::overhead, &KernelCost::total})
    cost.*time = a.*time * (1 - share) + b.*time * share;
  cost.residual = a.residual * (1 - share) + b.residual * share;
  cost.sd = std::max(a.sd, b.sd);
  cost.bound = cost.overhead > std::max(cost.compute, cost.memory) ? Bound::overhead
               : cost.compute > cost.memory                        ? Bound::compute
                                                                   : Bound::memory;
  return cost;
}

// The cost at a width. `widths` rise; beyond the last the cost is `cost_at(width)`, by formula and residual.
template <class CostAt>
[[nodiscard]] KernelCost cost_by_width(double width, std::span<const double> widths, CostAt cost_at) {
  const auto above = std::lower_bound(widths.begin(), widths.end(), width);
  if (above == widths.end()) return cost_at(width);
  KernelCost least = cost_at(*above);
  for (auto wider = above + 1; wider != widths.end(); ++wider) {
    const KernelCost cost = cost_at(*wider);
    if (cost.total < least.total) least = cost;
  }
  if (*above == width || above == widths.begin()) return least;
  const double below = *(above - 1);
  const KernelCost cost = cost_at(below);
  return between(cost.total < least.total ? cost : least, least, (width - below) / (*above - below));
}

}  // namespace tbdsim
