// A residual table with its kriging, made ready to be asked often. Says what ResidualTable::estimate says.
//
// While batches and rates change, the neighbours of most calls stay: each thread keeps what few
// neighbourhoods told that it met last, for each query of a step, and works out others. Nothing depends on
// what was asked before.
#pragma once

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

  // `found` gets one estimate for each query: faster for the queries of a step, always in one order.
  struct Query {
    const ResidualLookup* lookup;
    Features at;
  };
  static void estimate(std::span<const Query> queries, std::span<ResidualEstimate> found);

  [[nodiscard]] ResidualEstimate estimate(const Features& at, std::size_t query = 0) const;
  // Where no row tells anything.
  [[nodiscard]] double sd_alone() const { return covariance_.sd(0); }

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
