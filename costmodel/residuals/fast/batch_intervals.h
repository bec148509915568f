// A kernel's calls at different batch sizes lie on a straight line in Features::x. Points with the same
// nearest rows form a convex set, so that along the line the same neighbor set is right on a whole interval.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/residuals/nearest_rows.h"
#include "costmodel/residuals/residual_row.h"

namespace tbdsim {

struct CachedNeighbors;

class BatchIntervals {
 public:
  static constexpr std::size_t kMaxIntervals = 64;

  // The point's coordinate along the line. A point of another group or off the line starts a new line without
  // intervals.
  [[nodiscard]] double coordinate_of(const Features& at, std::uint64_t fingerprint);

  // The cached set of the nearest rows at the coordinate; null: there is none.
  [[nodiscard]] const CachedNeighbors* find(double coordinate) const;

  // Adds the interval around `at` in which no other row of the group can be nearer than the set's; the
  // nearest other row is at a distance of sqrt(next_square).
  void add(double coordinate, const Features& at, const CachedNeighbors& neighbors,
           std::span<const ResidualRow> group, double next_square);

  // Loads what find() will read into the processor's cache.
  void prefetch() const { __builtin_prefetch(intervals_.data()); }

 private:
  struct Interval {
    double low, high;
    const CachedNeighbors* neighbors;
    std::uint64_t generation;  // of the neighbor set; another one has taken its place where it differs
  };
  struct Reach {
    double down, up;
  };
  [[nodiscard]] Reach reach(const Features& at, const NeighborRows& rows, std::span<const ResidualRow> group,
                            double next_square) const;

  std::uint64_t fingerprint_ = 0;  // of the group
  bool has_direction_ = false;     // from the second point on
  std::array<double, Features::kMost> origin_{};
  std::array<double, Features::kMost> direction_{};  // of length 1
  std::vector<Interval> intervals_;                  // ascending and disjoint
};

}  // namespace tbdsim
