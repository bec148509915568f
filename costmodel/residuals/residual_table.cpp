#include "costmodel/residuals/residual_table.h"

#include <algorithm>
#include <cmath>

#include "costmodel/residuals/neighbor_set.h"

namespace tbdsim {
namespace {

bool by_group(const ResidualRow& a, const ResidualRow& b) { return a.at.group < b.at.group; }

}  // namespace

double distance(const Features& a, const Features& b) { return std::sqrt(squared_distance(a, b)); }

ResidualTable::ResidualTable(std::vector<ResidualRow> rows) : rows_(std::move(rows)) {
  std::stable_sort(rows_.begin(), rows_.end(), by_group);
}

std::span<const ResidualRow> ResidualTable::group(std::uint64_t id) const {
  ResidualRow any;
  any.at.group = id;
  const auto [begin, end] = std::equal_range(rows_.begin(), rows_.end(), any, by_group);
  return {begin, end};
}

NearestRows ResidualTable::nearest(const Features& at, int leave_out) const {
  const std::span<const ResidualRow> rows = group(at.group);
  return nearest_rows(rows, at, leave_out - static_cast<int>(rows.data() - rows_.data()));
}

ResidualEstimate ResidualTable::estimate(const Features& at, const Kriging& kriging, int leave_out) const {
  return estimate(at, kriging, nearest(at, leave_out));
}

ResidualEstimate ResidualTable::estimate(const Features& at, const Kriging& kriging,
                                         const NearestRows& nearest) const {
  const Covariance<double> covariance(kriging);
  return NeighborSet<double>(group(at.group), nearest.rows, covariance).estimate(at, covariance);
}

}  // namespace tbdsim
