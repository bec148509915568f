#include "costmodel/nearest_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>

#include "costmodel/wide_vectors.h"

namespace tbdsim {
namespace {

// How many of the first `count` numbers are less than each. Without branches, which nobody could foresee: few
// numbers are compared with one another sooner than sorted.
TBDSIM_WIDE_VECTORS void count_lesser(const double* numbers, std::size_t count, std::int64_t* lesser) {
  for (std::size_t begin = 0; begin < count; begin += 2 * kLanes) {
    Doubles own, further;
    std::memcpy(&own, numbers + begin, sizeof(own));
    std::memcpy(&further, numbers + begin + kLanes, sizeof(further));
    Integers before{}, before_further{};
    for (std::size_t j = 0; j < count; ++j) {
      const Doubles other = numbers[j] - Doubles{};
      before -= other < own;
      before_further -= other < further;
    }
    std::memcpy(lesser + begin, &before, sizeof(before));
    std::memcpy(lesser + begin + kLanes, &before_further, sizeof(before_further));
  }
}

// Places of the first `count` numbers in ascending order, of equal ones the first first; the others follow.
template <std::size_t N>
std::array<std::size_t, N> sorted(const std::array<double, N>& numbers, std::size_t count) {
  std::array<std::int64_t, N> lesser;
  count_lesser(numbers.data(), count, lesser.data());
  constexpr std::size_t kFree = N;
  std::array<std::size_t, N> order;
  order.fill(kFree);
  for (std::size_t i = 0; i < count; ++i) {
    auto place = static_cast<std::size_t>(lesser[i]);
    while (order[place] != kFree) ++place;
    order[place] = i;
  }
  std::iota(order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), count);
  return order;
}

// Between those that are there.
void insert(int row, double square, NearestRows& nearest) {
  auto& squares = nearest.squares;
  auto& rows = nearest.rows;
  const auto farther = [&](std::size_t i) {
    return squares[i] > square || (squares[i] == square && rows[i] > row);
  };
  std::size_t place = squares.size() - 1;
  if (!farther(place)) return;
  for (; place > 0 && farther(place - 1); --place) {
    squares[place] = squares[place - 1];
    rows[place] = rows[place - 1];
  }
  squares[place] = square;
  rows[place] = row;
}

}  // namespace

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

TBDSIM_WIDE_VECTORS RowBoxes::Row RowBoxes::squares_in(std::size_t box, const Features& at) const {
  Row squares{};
  for (std::size_t c = 0; c < coordinates_; ++c) {
    const Row& places = places_[box * coordinates_ + c];
    const double x = at.x[c];
    for (std::size_t i = 0; i < kRows; ++i) squares[i] += (places[i] - x) * (places[i] - x);
  }
  return squares;
}

TBDSIM_WIDE_VECTORS std::size_t RowBoxes::count_within(double square, const Features& at) const {
  Integers within{};
  for (std::size_t first = 0; first < boxes_.size(); first += kLanes) {
    Doubles to_boxes;
    squares_to(first, at, to_boxes);
    const Integers near = to_boxes <= square;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (near[lane] == 0) continue;
      const Row* places = &places_[(first + lane) * coordinates_];
      for (std::size_t i = 0; i < kRows; i += kLanes) {
        Doubles squares{};
        for (std::size_t c = 0; c < coordinates_; ++c) {
          Doubles place;
          std::memcpy(&place, &places[c][i], sizeof(place));
          squares += (place - at.x[c]) * (place - at.x[c]);
        }
        within -= squares <= square;
      }
    }
  }
  return static_cast<std::size_t>(within[0] + within[1] + within[2] + within[3]);
}

TBDSIM_WIDE_VECTORS std::size_t RowBoxes::closest_box(const Features& at) const {
  std::size_t closest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < boxes_.size(); first += kLanes) {
    Doubles squares;
    squares_to(first, at, squares);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (squares[lane] >= least) continue;
      least = squares[lane];
      closest = first + lane;
    }
  }
  return closest;
}

// The nearest box first: the fewer others are left to look into.
NearestRows RowBoxes::nearest(const Features& at) const {
  const std::size_t closest = closest_box(at);
  const Row squares = squares_in(closest, at);
  const auto order = sorted(squares, boxes_[closest].count);
  NearestRows nearest;
  for (std::size_t i = 0; i < nearest.squares.size(); ++i) {
    nearest.squares[i] = squares[order[i]];
    nearest.rows[i] = boxes_[closest].rows[order[i]];
  }
  for (std::size_t first = 0; first < boxes_.size(); first += kLanes) {
    Doubles to_boxes;
    squares_to(first, at, to_boxes);
    for (std::size_t b = first; b < std::min(first + kLanes, boxes_.size()); ++b) {
      if (b == closest || to_boxes[b - first] > nearest.squares.back()) continue;
      const Row others = squares_in(b, at);
      for (std::size_t i = 0; i < boxes_[b].count; ++i) insert(boxes_[b].rows[i], others[i], nearest);
    }
  }
  return nearest;
}

}  // namespace tbdsim
