// A residual table and its kriging parameters, prepared for predictions: groups are found by binary search,
// and estimates are in single precision.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/residuals/kriging.h"
#include "costmodel/residuals/neighbor_set.h"
#include "costmodel/residuals/residual_row.h"
#include "costmodel/residuals/residual_table.h"

namespace tbdsim {

class ResidualIndex {
 public:
  // The table must outlive it.
  ResidualIndex(const ResidualTable& table, const Kriging& kriging);

  struct Group {
    std::uint64_t id;
    std::span<const ResidualRow> rows;
    // A hash of rows and kriging parameters: groups with the same one give the same estimates, so that a
    // cache needs no other identity and may outlive the index.
    std::uint64_t fingerprint;
  };
  [[nodiscard]] const Group* find(std::uint64_t group) const;  // null: it has no rows
  // True if a group has the same bits of `mask` as `group`.
  [[nodiscard]] bool has_any(std::uint64_t group, std::uint64_t mask) const;
  // At a point of the group, without a cache (fast/estimate_cache.h has the same numbers with one).
  [[nodiscard]] ResidualEstimate estimate(const Group& group, const Features& at) const;
  [[nodiscard]] NeighborSet<float> neighbors(const Group& group, const NeighborRows& rows) const {
    return {group.rows, rows, covariance_};
  }
  [[nodiscard]] const Covariance<float>& covariance() const { return single_; }
  // Standard deviation of ln(measured / formula) where the group has no rows.
  [[nodiscard]] double sd_without_rows() const { return covariance_.sd(0); }

 private:
  Covariance<double> covariance_;
  Covariance<float> single_;
  std::vector<Group> groups_;  // by id
};

}  // namespace tbdsim
