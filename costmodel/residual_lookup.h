// A residual table with its kriging, made ready to be asked often: what the rows of a group share with one
// another is worked out when the group is first asked for. Says what ResidualTable::estimate says.
#pragma once

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

  // Faster for many at once: `found` gets one estimate for each query.
  struct Query {
    const ResidualLookup* lookup;
    Features at;
  };
  static void estimate(std::span<const Query> queries, std::span<ResidualEstimate> found);

  [[nodiscard]] ResidualEstimate estimate(const Features& at) const;
  // Where no row tells anything.
  [[nodiscard]] double sd_alone() const { return covariance_.sd(0); }

 private:
  struct Group {
    std::span<const ResidualRow> rows;
    int first = 0;  // index of the first of them in the table
    mutable std::once_flag ready;
    mutable RowBoxes boxes;
    // Of each two rows. A group of fewer than count is filled up with rows that tell nothing.
    mutable std::size_t count = 0;
    mutable std::vector<double> covariances, residuals;
  };
  void make_ready(const Group& group) const;
  [[nodiscard]] const Group* group_at(const Features& at) const;  // or none
  void set_up(const Group& group, const NearestRows& nearest, std::size_t lane,
              KrigingSystems& systems) const;

  Covariance covariance_;
  std::vector<std::uint64_t> ids_;  // of the groups, ascending
  std::deque<Group> groups_;
};

}  // namespace tbdsim
