#include "costmodel/residual_lookup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tbdsim {

ResidualLookup::ResidualLookup(const ResidualTable& table, const Kriging& kriging) : covariance_(kriging) {
  const std::span<const ResidualRow> rows = table.rows();
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].at.group == rows[begin].at.group) ++end;
    Group& group = groups_.emplace_back();
    group.rows = rows.subspan(begin, end - begin);
    group.first = static_cast<int>(begin);
    ids_.push_back(rows[begin].at.group);
  }
}

void ResidualLookup::make_ready(const Group& group) const {
  const std::size_t rows = group.rows.size(), n = std::max(rows, NearestRows::kMost);
  std::vector<Features> places;
  for (const ResidualRow& row : group.rows) {
    places.push_back(row.at);
    group.residuals.push_back(row.residual);
  }
  group.boxes = RowBoxes(places);
  group.count = n;
  group.residuals.resize(n);
  group.covariances.resize(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    group.covariances[i * n + i] = i < rows ? covariance_.of_itself() : 1;
    for (std::size_t j = 0; j < std::min(i, rows); ++j) {
      const double shared = i < rows ? covariance_(distance(places[i], places[j])) : 0;
      group.covariances[i * n + j] = group.covariances[j * n + i] = shared;
    }
  }
}

const ResidualLookup::Group* ResidualLookup::group_at(const Features& at) const {
  const auto id = std::lower_bound(ids_.begin(), ids_.end(), at.group);
  if (id == ids_.end() || *id != at.group) return nullptr;
  const Group& group = groups_[static_cast<std::size_t>(id - ids_.begin())];
  std::call_once(group.ready, [&] { make_ready(group); });
  return &group;
}

void ResidualLookup::set_up(const Group& group, const NearestRows& nearest, std::size_t lane,
                            KrigingSystems& systems) const {
  std::array<Doubles, NearestRows::kMost / kLanes> to_point;
  for (std::size_t j = 0; j < NearestRows::kMost; ++j)
    to_point[j / kLanes][j % kLanes] = std::sqrt(nearest.squares[j]);
  covariance_.apply(to_point);
  for (std::size_t j = 0; j < NearestRows::kMost; ++j) {
    const auto row = static_cast<std::size_t>(nearest.rows[j]);
    const double* shared = group.covariances.data() + row * group.count;
    for (std::size_t i = j; i < NearestRows::kMost; ++i)
      systems.set_covariance(lane, i, j, shared[nearest.rows[i]]);
    systems.set_neighbour(lane, j, to_point[j / kLanes][j % kLanes], group.residuals[row]);
  }
}

void ResidualLookup::estimate(std::span<const Query> queries, std::span<ResidualEstimate> found) {
  KrigingSystems systems;
  std::size_t q = 0;
  while (q < queries.size()) {
    std::array<std::size_t, kLanes> asked;
    std::size_t lanes = 0;
    for (; q < queries.size() && lanes < asked.size(); ++q) {
      const auto& [lookup, at] = queries[q];
      const Group* group = lookup->group_at(at);
      if (group == nullptr) {
        found[q] = {0, lookup->sd_alone(), std::numeric_limits<double>::infinity(), -1};
        continue;
      }
      const NearestRows nearest = group->boxes.nearest(at);
      lookup->set_up(*group, nearest, lanes, systems);
      found[q] = {0, 0, std::sqrt(nearest.squares[0]), group->first + nearest.rows[0]};
      asked[lanes++] = q;
    }
    const KrigingSystems::Solution solution = systems.solve();
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      ResidualEstimate& estimate = found[asked[lane]];
      estimate.mean = solution.mean[lane];
      estimate.sd = queries[asked[lane]].lookup->covariance_.sd(solution.told[lane]);
    }
  }
}

ResidualEstimate ResidualLookup::estimate(const Features& at) const {
  const Query query{this, at};
  ResidualEstimate found;
  estimate({&query, 1}, {&found, 1});
  return found;
}

}  // namespace tbdsim
