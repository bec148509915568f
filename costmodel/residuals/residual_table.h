// What a formula leaves unexplained, looked up among measured calls: ln(measured / formula) is interpolated
// between calls whose sizes lie near (kriging.h, with the nearest rows of the same group; the mean is 0).
//
// `own` is what one call deviates from its neighbours on every GPU: it holds for the same call on another
// card, from which that card differs by `repeat` (0.03-0.05 within a generation, DeepBench) only.
//
// Far from every row the mean falls back to 0 and the spread to the amplitude: the formula alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/families/kernel_time.h"
#include "costmodel/residuals/kriging.h"

namespace tbdsim {

struct ResidualRow {
  Features at;
  double residual = 0;  // ln(measured / formula)
  int call = -1;        // index of the measured call, in the order given
};

struct ResidualEstimate {
  double mean = 0;
  double sd = 0;        // of a new measurement about formula x exp(mean)
  double distance = 0;  // to the nearest row; infinite: the group has none
};

class ResidualTable {
 public:
  static constexpr int kNeighbours = kMostNeighbours;

  explicit ResidualTable(std::vector<ResidualRow> rows);  // sorted by group, otherwise in the order given

  [[nodiscard]] const std::vector<ResidualRow>& rows() const { return rows_; }
  // `leave_out`: a row not to be used, for cross-validation; -1: none.
  [[nodiscard]] ResidualEstimate estimate(const Features& at, const Kriging& kriging,
                                          int leave_out = -1) const;

  // The rows of the group nearest to a point, nearest first.
  struct Neighbour {
    int row;
    double distance;
  };
  [[nodiscard]] int nearest(const Features& at, int leave_out, std::span<Neighbour> found) const;
  [[nodiscard]] ResidualEstimate estimate(const Features& at, const Kriging& kriging,
                                          std::span<const Neighbour> neighbours) const;

 private:
  std::vector<ResidualRow> rows_;
};

// Euclidean, over the coordinates of one group.
[[nodiscard]] double distance(const Features& a, const Features& b);

}  // namespace tbdsim
