// The rows of a residual table that lie nearest to a point. Rows near one another share a box; a box farther
// away than what was found is passed by.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "costmodel/families/kernel_time.h"
#include "costmodel/residuals/fast/wide_vectors.h"
#include "costmodel/residuals/kriging.h"

namespace tbdsim {

// In ascending order of their numbers, of equally far ones the first. Squares of distances: of few rows the
// root is needed. Where there are fewer rows, further ones are infinitely far: with n rows, n, n + 1, ...
struct NearestRows {
  static constexpr std::size_t kMost = kMostNeighbours;
  std::array<int, kMost> rows;
  double further;  // no other row's square is less
};

class RowBoxes {
 public:
  RowBoxes() = default;
  // Of one group, at least one.
  explicit RowBoxes(std::span<const Features> rows);

  // Faster where `within` is a square of which kMost rows are known not to exceed it.
  [[nodiscard]] NearestRows nearest(const Features& at,
                                    double within = std::numeric_limits<double>::infinity()) const;

 private:
  static constexpr std::size_t kRows = 32;  // of a box; of one that is not full the last are infinitely far
  using Row = std::array<double, kRows>;
  struct Box {
    std::size_t count = 0;
    std::array<int, kRows> rows;  // ascending
  };

  struct alignas(sizeof(Doubles)) Bounds {
    Doubles lowest, highest;
  };

  class Candidates;

  void part(std::span<int> numbers, std::span<const Features> rows);
  void add_box(std::span<int> numbers, std::span<const Features> rows);
  void squares_to(std::size_t first, const Features& at, Doubles& squares) const;
  void add_rows(std::size_t box, const Features& at, Candidates& candidates) const;

  std::size_t coordinates_ = 0;
  std::vector<Box> boxes_;
  std::vector<Row> places_;     // coordinates of each box's rows, one coordinate after another
  std::vector<Bounds> bounds_;  // the same of boxes, kLanes at a time
};

}  // namespace tbdsim
