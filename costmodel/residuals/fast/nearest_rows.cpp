#include "costmodel/residuals/fast/nearest_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>

#include "costmodel/residuals/fast/wide_vectors.h"

namespace tbdsim {

// Rows that may be among the nearest.
class RowBoxes::Candidates {
 public:
  Candidates(double within_square) : within(within_square) {}

  double within;                                             // no nearest row's square is greater
  double further = std::numeric_limits<double>::infinity();  // nor that of a row left out less

  void add(int row, double square) {
    all_[count_++] = {square, row};
    if (count_ == all_.size()) keep_nearest();
  }

  // Of equally far ones the first.
  void keep_nearest() {
    if (count_ == NearestRows::kMost) return;
    const auto end = all_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto others = all_.begin() + NearestRows::kMost;
    std::nth_element(all_.begin(), others, end);
    further = std::min(further, others->first);
    count_ = NearestRows::kMost;
    within = std::max_element(all_.begin(), others)->first;
  }

  // By how many are before each: sooner than comparisons whose outcome nobody foresees.
  [[nodiscard]] NearestRows nearest() const {
    NearestRows nearest{.rows = {}, .further = further};
    std::array<int, NearestRows::kMost> rows, before{};
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = all_[i].second;
    for (const int row : rows) {
      for (std::size_t i = 0; i < rows.size(); ++i) before[i] += row < rows[i] ? 1 : 0;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) nearest.rows[static_cast<std::size_t>(before[i])] = rows[i];
    return nearest;
  }

 private:
  std::array<std::pair<double, int>, 2 * kRows> all_;
  std::size_t count_ = 0;
};

RowBoxes::RowBoxes(std::span<const Features> rows) : coordinates_(static_cast<std::size_t>(rows[0].count)) {
  std::vector<int> numbers(rows.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  part(numbers, rows);
}

// Halves along the coordinate in which the rows lie widest apart.
void RowBoxes::part(std::span<int> numbers, std::span<const Features> rows) {
  if (numbers.size() <= kRows) return add_box(numbers, rows);
  const auto less_along = [&](std::size_t c) {
    return [&rows, c](int a, int b) {
      return rows[static_cast<std::size_t>(a)].x[c] < rows[static_cast<std::size_t>(b)].x[c];
    };
  };
  std::size_t along = 0;
  double widest = -1;
  for (std::size_t c = 0; c < coordinates_; ++c) {
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end(), less_along(c));
    const double width =
        rows[static_cast<std::size_t>(*high)].x[c] - rows[static_cast<std::size_t>(*low)].x[c];
    if (width <= widest) continue;
    widest = width;
    along = c;
  }
  const std::size_t half = (numbers.size() / 2 + kRows - 1) / kRows * kRows;  // of full boxes
  std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(half), numbers.end(),
                   less_along(along));
  part(numbers.first(half), rows);
  part(numbers.subspan(half), rows);
}

void RowBoxes::add_box(std::span<int> numbers, std::span<const Features> rows) {
  std::sort(numbers.begin(), numbers.end());
  const std::size_t lane = boxes_.size() % kLanes;
  const std::size_t bounds = boxes_.size() / kLanes * coordinates_;
  const Doubles far = Doubles{} + std::numeric_limits<double>::infinity();
  if (lane == 0) bounds_.resize(bounds + coordinates_, {far, far});
  Box& box = boxes_.emplace_back();
  box.count = numbers.size();
  std::copy(numbers.begin(), numbers.end(), box.rows.begin());
  std::iota(box.rows.begin() + std::ssize(numbers), box.rows.end(), static_cast<int>(rows.size()));
  for (std::size_t c = 0; c < coordinates_; ++c) {
    Row& places = places_.emplace_back();
    places.fill(std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      places[i] = rows[static_cast<std::size_t>(numbers[i])].x[c];
    const auto [low, high] = std::minmax_element(places.begin(), places.begin() + std::ssize(numbers));
    bounds_[bounds + c].lowest[lane] = *low;
    bounds_[bounds + c].highest[lane] = *high;
  }
}

// To kLanes boxes; those that are not there are infinitely far.
inline void RowBoxes::squares_to(std::size_t first, const Features& at, Doubles& squares) const {
  squares = Doubles{};
  for (std::size_t c = 0; c < coordinates_; ++c) {
    const auto& [lowest, highest] = bounds_[first / kLanes * coordinates_ + c];
    const Doubles below = lowest - at.x[c], above = at.x[c] - highest;
    Doubles apart = below > above ? below : above;
    apart = apart > 0 ? apart : Doubles{};
    squares += apart * apart;
  }
}

// Few rows are near: several are passed by at once.
TBDSIM_WIDE_VECTORS void RowBoxes::add_rows(std::size_t box, const Features& at,
                                            Candidates& candidates) const {
  const Row* places = &places_[box * coordinates_];
  Doubles further = Doubles{} + std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kRows; i += kLanes) {
    Doubles squares{};
    for (std::size_t c = 0; c < coordinates_; ++c) {
      Doubles place;
      std::memcpy(&place, &places[c][i], sizeof(place));
      squares += (place - at.x[c]) * (place - at.x[c]);
    }
    const Doubles within = candidates.within - Doubles{};
    const Integers near = squares <= within;
    if ((near[0] | near[1] | near[2] | near[3]) != 0) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        if (near[lane] != 0) candidates.add(boxes_[box].rows[i + lane], squares[lane]);
      }
    }
    const Doubles left = near ? further : squares;
    further = further < left ? further : left;
  }
  candidates.further = std::min(candidates.further, least_of(further));
}

NearestRows RowBoxes::nearest(const Features& at, double within) const {
  Candidates candidates(within);
  for (std::size_t first = 0; first < boxes_.size(); first += kLanes) {
    Doubles to_boxes;
    squares_to(first, at, to_boxes);
    for (std::size_t b = first; b < std::min(first + kLanes, boxes_.size()); ++b) {
      if (to_boxes[b - first] <= candidates.within) {
        add_rows(b, at, candidates);
      } else {
        candidates.further = std::min(candidates.further, to_boxes[b - first]);
      }
    }
  }
  candidates.keep_nearest();
  return candidates.nearest();
}

}  // namespace tbdsim
