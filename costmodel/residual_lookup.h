// A residual table with its kriging, made ready to be asked often. Says what ResidualTable::estimate says.
//
// While batches and rates change, the neighbours of most calls stay, and those of a sweep's calls come back:
// each thread keeps the neighbourhoods it met last, and works out others. Nothing depends on what was asked
// before.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "costmodel/nearest_rows.h"
#include "costmodel/residual_table.h"

namespace tbdsim {

// Several threads may use it at a time.
class ResidualLookup {
 public:
  // The table must outlive it.
  ResidualLookup(const ResidualTable& table, const Kriging& kriging);

  // Faster where `query` was about a call nearby the last time: the number of the kernel in its step.
  [[nodiscard]] ResidualEstimate estimate(const Features& at, std::size_t query = 0) const;
  // Where no row tells anything, as in groups of which none is known.
  [[nodiscard]] double sd_alone() const { return covariance_.sd(0); }
  [[nodiscard]] bool knows(std::uint64_t group) const {
    return std::binary_search(ids_.begin(), ids_.end(), group);
  }

 private:
  struct Group {
    std::span<const ResidualRow> rows;
    std::uint64_t number = 0;  // no other has it, in any lookup
    mutable std::once_flag ready;
    mutable RowBoxes boxes;
  };
  struct Neighbourhood;
  class LastMet;
  [[nodiscard]] const Group* group_at(const Features& at) const;  // or none
  void settle(const Group& group, const std::array<int, NearestRows::kMost>& rows, Neighbourhood& at) const;

  Covariance covariance_;
  std::vector<std::uint64_t> ids_;  // of the groups, ascending
  std::deque<Group> groups_;
};

}  // namespace tbdsim
