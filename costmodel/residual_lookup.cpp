#include "costmodel/residual_lookup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "costmodel/wide_vectors.h"

namespace tbdsim {
namespace {

// The rows nearest to a point, nearest first. Squares of distances: of few rows the root is needed.
struct Nearest {
  static constexpr std::size_t kMost = KrigingSystem::kMost;
  std::array<double, kMost> squares;
  std::array<std::size_t, kMost> rows;
  std::size_t count = 0;

  void take(std::size_t row, double square) {
    if (count == kMost && square >= squares[kMost - 1]) return;
    std::size_t place = count < kMost ? count++ : kMost - 1;
    for (; place > 0 && squares[place - 1] > square; --place) {
      squares[place] = squares[place - 1];
      rows[place] = rows[place - 1];
    }
    squares[place] = square;
    rows[place] = row;
  }
};

// `coordinates`: of all rows, one coordinate after another.
TBDSIM_WIDE_VECTORS Nearest nearest_to(const Features& at, const std::vector<double>& coordinates,
                                       std::size_t rows) {
  constexpr std::size_t kAtOnce = 64;
  Nearest nearest;
  std::array<double, kAtOnce> squares;
  for (std::size_t begin = 0; begin < rows; begin += kAtOnce) {
    const std::size_t n = std::min(kAtOnce, rows - begin);
    std::fill_n(squares.begin(), n, 0.0);
    for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c) {
      const double x = at.x[c];
      const double* of_rows = coordinates.data() + c * rows + begin;
      for (std::size_t i = 0; i < n; ++i) squares[i] += (of_rows[i] - x) * (of_rows[i] - x);
    }
    for (std::size_t i = 0; i < n; ++i) nearest.take(begin + i, squares[i]);
  }
  return nearest;
}

}  // namespace

ResidualLookup::ResidualLookup(const ResidualTable& table, const Kriging& kriging) : covariance_(kriging) {
  const std::span<const ResidualRow> rows = table.rows();
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].at.group == rows[begin].at.group) ++end;
    Group& group = groups_.emplace_back();
    group.rows = rows.subspan(begin, end - begin);
    group.first = static_cast<int>(begin);
  }
}

void ResidualLookup::make_ready(const Group& group) const {
  const std::size_t n = group.rows.size();
  for (std::size_t c = 0; c < static_cast<std::size_t>(group.rows[0].at.count); ++c) {
    for (const ResidualRow& row : group.rows) group.coordinates.push_back(row.at.x[c]);
  }
  group.covariances.resize(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    group.covariances[i * n + i] = covariance_.of_itself();
    for (std::size_t j = 0; j < i; ++j) {
      const double shared = covariance_(distance(group.rows[i].at, group.rows[j].at));
      group.covariances[i * n + j] = group.covariances[j * n + i] = shared;
    }
  }
}

ResidualEstimate ResidualLookup::estimate(const Features& at) const {
  ResidualEstimate result{0, covariance_.sd(0), std::numeric_limits<double>::infinity(), -1};
  const auto group = std::lower_bound(groups_.begin(), groups_.end(), at.group,
                                      [](const Group& g, auto id) { return g.rows[0].at.group < id; });
  if (group == groups_.end() || group->rows[0].at.group != at.group) return result;
  std::call_once(group->ready, [&] { make_ready(*group); });
  const std::size_t n = group->rows.size();
  const Nearest nearest = nearest_to(at, group->coordinates, n);
  KrigingSystem system(nearest.count);
  for (std::size_t j = 0; j < nearest.count; ++j) {
    const double* shared = group->covariances.data() + nearest.rows[j] * n;
    for (std::size_t i = j; i < nearest.count; ++i) system.set_covariance(i, j, shared[nearest.rows[i]]);
    system.set_neighbour(j, covariance_(std::sqrt(nearest.squares[j])),
                         group->rows[nearest.rows[j]].residual);
  }
  const KrigingSystem::Solution solution = system.solve();
  result.mean = solution.mean;
  result.sd = covariance_.sd(solution.told);
  result.distance = std::sqrt(nearest.squares[0]);
  result.nearest = group->first + static_cast<int>(nearest.rows[0]);
  return result;
}

}  // namespace tbdsim
