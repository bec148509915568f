#include "costmodel/residuals/residual_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tbdsim {
namespace {

constexpr int kMost = ResidualTable::kNeighbours;

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
  const Covariance covariance(kriging);
  ResidualEstimate result{0, covariance.sd(0), std::numeric_limits<double>::infinity()};
  if (neighbours.empty()) return result;
  result.distance = neighbours[0].distance;
  const auto row = [&](std::size_t i) -> const ResidualRow& {
    return rows_[static_cast<std::size_t>(neighbours[i].row)];
  };
  KrigingSystem system;
  Numbers to_point{};
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    to_point.set(i, covariance(neighbours[i].distance));
    system.set_value(i, row(i).residual);
    system.set_covariance(i, i, covariance.of_itself());
    for (std::size_t j = 0; j < i; ++j)
      system.set_covariance(i, j, covariance(distance(row(i).at, row(j).at)));
  }
  system.factorize();
  const KrigingSystem::KrigingEstimate told = system.about(to_point);
  result.mean = told.mean;
  result.sd = covariance.sd(told.told);
  return result;
}

}  // namespace tbdsim
