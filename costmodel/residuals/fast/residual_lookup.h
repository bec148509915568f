// A residual table with its kriging, made ready to be asked often. Says what ResidualTable::estimate says, to
// six digits.
//
// While batches and rates change, the neighbours of most calls stay, and those of a sweep's calls come back:
// each thread keeps the neighbourhoods it met last, and how far each reaches, and works out others. Nothing
// depends on what was asked before.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "costmodel/residuals/fast/nearest_rows.h"
#include "costmodel/residuals/kriging.h"
#include "costmodel/residuals/residual_table.h"

namespace tbdsim {

// Several threads may use it at a time.
class ResidualLookup {
 public:
  // The table must outlive it.
  ResidualLookup(const ResidualTable& table, const Kriging& kriging);

  class Group;                                                 // rows that can be near one another
  [[nodiscard]] const Group* find(std::uint64_t group) const;  // or none
  // Of a point of the group. Faster where `query` was about calls that differ in one size alone, as the
  // batch: the number of the kernel in its step.
  [[nodiscard]] ResidualEstimate estimate(const Group& group, const Features& at,
                                          std::size_t query = 0) const;
  // Where no row tells anything, as of points of no group.
  [[nodiscard]] double sd_alone() const { return covariance_.sd(0); }

 private:
  class LastMet;

  Covariance covariance_;
  std::vector<std::uint64_t> ids_;  // of the groups, ascending
  std::vector<std::unique_ptr<const Group>> groups_;
};

class ResidualLookup::Group {
 public:
  Group(std::span<const ResidualRow> all, std::uint64_t own_number) : rows(all), number(own_number) {}

  const std::span<const ResidualRow> rows;
  const std::uint64_t number;  // no other has it, in any lookup
  // As RowBoxes::nearest.
  [[nodiscard]] NearestRows nearest(const Features& at, double within) const;

 private:
  mutable std::once_flag ready_;
  mutable RowBoxes boxes_;
};

}  // namespace tbdsim
