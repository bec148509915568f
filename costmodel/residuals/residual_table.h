// Residuals of measured calls, interpolated between calls of similar size by kriging (kriging.h) over the
// nearest rows of the same group.
//
// own^2 (kriging.h) is the variance of one call about its neighbors on every GPU: the same call on another
// GPU differs from it by `repeat` only (0.03-0.05 within a generation, DeepBench).
//
// Far from every row the mean falls to 0 and the standard deviation rises to the amplitude: the formula
// alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/residuals/kriging.h"
#include "costmodel/residuals/nearest_rows.h"
#include "costmodel/residuals/residual_row.h"

namespace tbdsim {

class ResidualTable {
 public:
  explicit ResidualTable(std::vector<ResidualRow> rows);

  // Sorted by group, otherwise in the order given.
  [[nodiscard]] const std::vector<ResidualRow>& rows() const { return rows_; }
  // Empty where there is none.
  [[nodiscard]] std::span<const ResidualRow> group(std::uint64_t id) const;

  // In double precision. `leave_out`: index in rows() of a row not to be used, for cross-validation; -1:
  // none.
  [[nodiscard]] ResidualEstimate estimate(const Features& at, const Kriging& kriging,
                                          int leave_out = -1) const;
  // The two halves of it: the search is the same for all kriging parameters.
  [[nodiscard]] NearestRows nearest(const Features& at, int leave_out) const;
  [[nodiscard]] ResidualEstimate estimate(const Features& at, const Kriging& kriging,
                                          const NearestRows& nearest) const;

 private:
  std::vector<ResidualRow> rows_;
};

// Euclidean distance over the coordinates of one group.
[[nodiscard]] double distance(const Features& a, const Features& b);

}  // namespace tbdsim
