#include "costmodel/residuals/fast/batch_intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "costmodel/residuals/fast/estimate_cache.h"

namespace tbdsim {
namespace {

// Largest distance of a point from its line: rounding, and the 1 added to bytes before their logarithm is
// taken, move calls off it by less.
constexpr double kTolerance = 1e-6;

}  // namespace

double BatchIntervals::coordinate_of(const Features& at, std::uint64_t fingerprint) {
  const auto count = static_cast<std::size_t>(at.count);
  double along = 0, square = 0;
  for (std::size_t c = 0; c < count; ++c) {
    const double offset = at.x[c] - origin_[c];
    along += offset * direction_[c];
    square += offset * offset;
  }
  if (fingerprint == fingerprint_ && square - along * along <= kTolerance * kTolerance) return along;
  if (fingerprint != fingerprint_ || has_direction_) {
    *this = {};
    fingerprint_ = fingerprint;
    origin_ = at.x;
    return 0;
  }
  has_direction_ = true;
  const double length = std::sqrt(square);
  for (std::size_t c = 0; c < count; ++c) direction_[c] = (at.x[c] - origin_[c]) / length;
  return length;
}

const CachedNeighbors* BatchIntervals::find(double coordinate) const {
  const auto ends_before = [](const Interval& interval, double x) { return interval.high < x; };
  const auto found = std::lower_bound(intervals_.begin(), intervals_.end(), coordinate, ends_before);
  if (found == intervals_.end() || coordinate < found->low) return nullptr;
  return found->neighbors->generation == found->generation ? found->neighbors : nullptr;
}

// A step s along the line leaves every other row at least n - s away, n = sqrt(next_square). A neighbor at a
// distance d, whose coordinate is larger by a, is then at sqrt(d^2 - 2 * a * s + s^2), which is less than n -
// s while s < (n^2 - d^2) / (2 * (n - a)); backwards a has the other sign. n is reduced by a margin for
// points that are slightly off the line.
BatchIntervals::Reach BatchIntervals::reach(const Features& at, const NeighborRows& rows,
                                            std::span<const ResidualRow> group, double next_square) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Reach reach{kInfinity, kInfinity};
  if (std::isinf(next_square)) return reach;
  const double n = std::sqrt(next_square) - 4 * kTolerance;
  for (const int index : rows) {
    const Features& row = group[static_cast<std::size_t>(index)].at;
    double ahead = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(at.count); ++c)
      ahead += (row.x[c] - at.x[c]) * direction_[c];
    const double room = n * n - squared_distance(row, at);
    if (room <= 0) return {0, 0};
    reach.down = std::min(reach.down, room / (2 * (n + ahead)));
    reach.up = std::min(reach.up, room / (2 * (n - ahead)));
  }
  return reach;
}

void BatchIntervals::add(double coordinate, const Features& at, const CachedNeighbors& neighbors,
                         std::span<const ResidualRow> group, double next_square) {
  const auto [down, up] = reach(at, neighbors.rows, group, next_square);
  if (down <= 0 || up <= 0) return;
  Interval added{coordinate, coordinate, &neighbors, neighbors.generation};
  if (has_direction_) {
    added.low -= down;
    added.high += up;
  }
  if (intervals_.size() >= kMaxIntervals) intervals_.clear();
  // Intervals of the same set are joined. Others that overlap it belong to sets that were evicted: they go.
  std::erase_if(intervals_, [&](const Interval& other) {
    if (other.generation != added.generation) return other.low <= added.high && other.high >= added.low;
    added.low = std::min(added.low, other.low);
    added.high = std::max(added.high, other.high);
    return true;
  });
  const auto after = [&](const Interval& other) { return other.low > added.high; };
  intervals_.insert(std::find_if(intervals_.begin(), intervals_.end(), after), added);
}

}  // namespace tbdsim
