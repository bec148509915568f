#include "calibrate/kriging_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tbdsim {
namespace {

constexpr double kLengths[] = {0.35, 0.7, 1.4, 2.8, 5.6, 12};
constexpr double kNuggets[] = {0.1, 0.25, 0.5, 1.0};  // of the amplitude
constexpr std::size_t kMostLeftOut = 400;

double robust_spread(const std::vector<ResidualRow>& rows) {
  std::vector<double> sizes;
  for (const ResidualRow& row : rows) sizes.push_back(std::abs(row.residual));
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  const double clip = 3 * 1.4826 * *middle;
  double sum = 0;
  for (const double size : sizes) sum += std::min(size, clip) * std::min(size, clip);
  return std::max(0.02, std::sqrt(sum / static_cast<double>(sizes.size())));
}

}  // namespace

Kriging fit_kriging(const ResidualTable& table) {
  const std::vector<ResidualRow>& rows = table.rows();
  Kriging best;
  if (rows.size() < 4) return best;
  const double amplitude = robust_spread(rows);
  struct Left {
    std::size_t row;
    int count;
    std::array<ResidualTable::Neighbour, ResidualTable::kNeighbours> neighbours;
  };
  std::vector<Left> left;
  const std::size_t stride = std::max<std::size_t>(1, rows.size() / kMostLeftOut);
  for (std::size_t i = 0; i < rows.size(); i += stride) {
    Left one{i, 0, {}};
    one.count = table.nearest(rows[i].at, static_cast<int>(i), one.neighbours);
    left.push_back(one);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const double length : kLengths) {
    for (const double nugget : kNuggets) {
      const Kriging kriging{amplitude, length, nugget * amplitude};
      double error = 0;
      for (const Left& one : left) {
        const auto found = std::span(one.neighbours).first(static_cast<std::size_t>(one.count));
        error += std::abs(rows[one.row].residual - table.estimate(rows[one.row].at, kriging, found).mean);
      }
      if (error < least) {
        least = error;
        best = kriging;
      }
    }
  }
  return best;
}

}  // namespace tbdsim
