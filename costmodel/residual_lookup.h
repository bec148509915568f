// A residual table with its kriging, made ready to be asked often: what the rows of a group share with one
// another is worked out when the group is first asked for. Says what ResidualTable::estimate says.
#pragma once

#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "costmodel/residual_table.h"

namespace tbdsim {

// Several threads may use it at a time.
class ResidualLookup {
 public:
  // The table must outlive it.
  ResidualLookup(const ResidualTable& table, const Kriging& kriging);

  [[nodiscard]] ResidualEstimate estimate(const Features& at) const;
  // Where no row tells anything.
  [[nodiscard]] double sd_alone() const { return covariance_.sd(0); }

 private:
  struct Group {
    std::span<const ResidualRow> rows;
    int first = 0;  // index of the first of them in the table
    mutable std::once_flag ready;
    mutable std::vector<double> coordinates;  // of all rows, one coordinate after another
    mutable std::vector<double> covariances;  // of each two rows
  };
  void make_ready(const Group& group) const;

  Covariance covariance_;
  std::deque<Group> groups_;  // ascending
};

}  // namespace tbdsim
