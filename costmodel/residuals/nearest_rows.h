// The nearest rows of a group to a point, by Euclidean distance in Features::x.
#pragma once

#include <array>
#include <span>

#include "costmodel/residuals/lanes.h"
#include "costmodel/residuals/residual_row.h"

namespace tbdsim {

using NeighborRows = std::array<int, kMaxNeighbors>;

struct NearestRows {
  NeighborRows rows{};  // indices in ascending order; with n < kMaxNeighbors rows then n, n + 1, ...
  double next_square;   // squared distance of the nearest row that is not among them; infinite: there is none
};

// The first row wins among equally far ones. `leave_out`: index of a row not to be used; -1: none.
[[nodiscard]] NearestRows nearest_rows(std::span<const ResidualRow> group, const Features& at,
                                       int leave_out = -1);

}  // namespace tbdsim
