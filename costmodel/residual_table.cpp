#include "costmodel/residual_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace tbdsim {
namespace {

constexpr int kMost = ResidualTable::kNeighbours;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMost, kMost>;
using Vector = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, kMost, 1>;

constexpr double kSamePlace = 1e-6;

bool by_group(const ResidualRow& a, const ResidualRow& b) { return a.at.group < b.at.group; }

}  // namespace

double distance(const Features& a, const Features& b) {
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count); ++i) {
    sum += (a.x[i] - b.x[i]) * (a.x[i] - b.x[i]);
  }
  return std::sqrt(sum);
}

ResidualTable::ResidualTable(std::vector<ResidualRow> rows) : rows_(std::move(rows)) {
  std::stable_sort(rows_.begin(), rows_.end(), by_group);
}

int ResidualTable::nearest(const Features& at, int leave_out, std::span<Neighbour> found) const {
  const auto [begin, end] = std::equal_range(rows_.begin(), rows_.end(), ResidualRow{at}, by_group);
  int count = 0;
  const int most = static_cast<int>(found.size());
  for (auto row = begin; row != end; ++row) {
    const int index = static_cast<int>(row - rows_.begin());
    if (index == leave_out) continue;
    const double d = distance(at, row->at);
    if (count == most && d >= found[static_cast<std::size_t>(count - 1)].distance) continue;
    int place = count < most ? count++ : count - 1;
    for (; place > 0 && found[static_cast<std::size_t>(place - 1)].distance > d; --place) {
      found[static_cast<std::size_t>(place)] = found[static_cast<std::size_t>(place - 1)];
    }
    found[static_cast<std::size_t>(place)] = {index, d};
  }
  return count;
}

ResidualEstimate ResidualTable::estimate(const Features& at, const Kriging& kriging, int leave_out) const {
  std::array<Neighbour, kMost> found;
  const int count = nearest(at, leave_out, found);
  return estimate(at, kriging, std::span<const Neighbour>(found).first(static_cast<std::size_t>(count)));
}

ResidualEstimate ResidualTable::estimate(const Features&, const Kriging& kriging,
                                         std::span<const Neighbour> neighbours) const {
  const double variance = kriging.amplitude * kriging.amplitude;
  const double nugget = kriging.nugget * kriging.nugget;
  const double noise = std::min(nugget, kriging.repeat * kriging.repeat);
  const auto shared = [&](double d) {
    return variance * std::exp(-d / kriging.length) + (d < kSamePlace ? nugget - noise : 0);
  };
  ResidualEstimate result{0, std::sqrt(variance + nugget), std::numeric_limits<double>::infinity(), -1};
  const auto n = static_cast<Eigen::Index>(neighbours.size());
  if (n == 0) return result;
  result.distance = neighbours[0].distance;
  result.nearest = neighbours[0].row;
  Matrix covariance(n, n);
  Vector to_point(n), residuals(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const ResidualRow& a = rows_[static_cast<std::size_t>(neighbours[static_cast<std::size_t>(i)].row)];
    residuals(i) = a.residual;
    to_point(i) = shared(neighbours[static_cast<std::size_t>(i)].distance);
    covariance(i, i) = variance + nugget;
    for (Eigen::Index j = 0; j < i; ++j) {
      const ResidualRow& b = rows_[static_cast<std::size_t>(neighbours[static_cast<std::size_t>(j)].row)];
      covariance(i, j) = covariance(j, i) = shared(distance(a.at, b.at));
    }
  }
  const Vector weights = covariance.llt().solve(to_point);
  result.mean = weights.dot(residuals);
  result.sd = std::sqrt(std::max(noise, variance + nugget - weights.dot(to_point)));
  return result;
}

}  // namespace tbdsim
