#include "costmodel/residuals/nearest_rows.h"

#include <algorithm>
#include <limits>

namespace tbdsim {

NearestRows nearest_rows(std::span<const ResidualRow> group, const Features& at, int leave_out) {
  struct Candidate {
    double square = std::numeric_limits<double>::infinity();
    int row = 0;
  };
  std::array<Candidate, kMaxNeighbors + 1> nearest;  // in ascending order of their squares
  for (std::size_t i = 0; i < nearest.size(); ++i) nearest[i].row = static_cast<int>(group.size() + i);
  for (int row = 0; row < std::ssize(group); ++row) {
    const double square = squared_distance(at, group[static_cast<std::size_t>(row)].at);
    if (square >= nearest.back().square || row == leave_out) continue;
    auto* place = nearest.end() - 1;
    for (; place != nearest.begin() && place[-1].square > square; --place) *place = place[-1];
    *place = {square, row};
  }
  NearestRows result{.next_square = nearest.back().square};
  for (std::size_t i = 0; i < kMaxNeighbors; ++i) result.rows[i] = nearest[i].row;
  std::sort(result.rows.begin(), result.rows.end());
  return result;
}

}  // namespace tbdsim
