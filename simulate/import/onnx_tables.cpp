#include "simulate/import/onnx_tables.h"

#include <cmath>
#include <cstddef>
#include <iterator>

namespace tbdsim {
namespace {

using Dims = std::vector<std::int64_t>;
using Numbers = StoredNumbers<float>;
constexpr double kTolerance = 1e-3;  // of sines that are computed in single precision, over thousands of rows

// A matrix of the last side's columns.
struct Rows {
  Numbers numbers;
  std::size_t columns;
  [[nodiscard]] std::size_t count() const { return numbers.size() / columns; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const {
    return static_cast<double>(numbers[row * columns + column]);
  }
};

// 0, and one number that no softmax leaves anything of.
bool is_mask(Numbers numbers) {
  constexpr float kBlocked = -99.0F;
  float other = 0;
  bool has_zero = false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float number = numbers[i];
    has_zero |= number == 0;
    if (number == 0 || number == other) continue;
    if (other != 0 || !(number < kBlocked)) return false;
    other = number;
  }
  return other != 0 && has_zero;
}

// A column x of sines or cosines of p * f, p the row: x[p + 1] + x[p - 1] = 2 cos(f) x[p] for all p.
bool is_sinusoid(const Rows& rows, std::size_t column) {
  std::size_t largest = 1;
  for (std::size_t p = 1; p + 1 < rows.count(); ++p) {
    if (std::abs(rows.at(p, column)) > std::abs(rows.at(largest, column))) largest = p;
  }
  const double x = rows.at(largest, column);
  if (!(std::abs(x) > kTolerance)) return false;
  const double twice = (rows.at(largest + 1, column) + rows.at(largest - 1, column)) / x;
  if (!(std::abs(twice) < 2 + kTolerance)) return false;
  for (std::size_t p = 1; p + 1 < rows.count(); ++p) {
    const double off = rows.at(p + 1, column) + rows.at(p - 1, column) - twice * rows.at(p, column);
    if (!(std::abs(off) < kTolerance)) return false;
  }
  return true;
}

bool is_constant(Numbers numbers) {
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] != numbers[0]) return false;
  }
  return true;
}

// Trained numbers are no sinusoids; of computed ones some columns may be too slow to tell.
bool has_sinusoids(const Rows& rows) {
  constexpr std::size_t kFewest = 4;
  if (rows.count() < kFewest || rows.columns < 2) return false;
  std::size_t moving = 0;
  for (std::size_t column = 0; column < rows.columns; ++column) {
    if (!is_sinusoid(rows, column)) return false;
    const double first = rows.at(0, column), last = rows.at(rows.count() - 1, column);
    moving += std::abs(first - last) > kTolerance ? 1 : 0;
  }
  return 2 * moving >= rows.columns;
}

// 1, r, r^2, ...: frequencies of positions.
bool is_geometric(Numbers numbers) {
  constexpr std::size_t kFewest = 4;
  if (numbers.size() < kFewest || numbers[0] != 1) return false;
  const double ratio = static_cast<double>(numbers[1]);
  if (!(ratio > 0 && ratio < 1)) return false;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (std::abs(static_cast<double>(numbers[i]) / static_cast<double>(numbers[i - 1]) / ratio - 1) >
        kTolerance)
      return false;
  }
  return true;
}

// Each column depends on one of the sides before it alone, another on another.
bool is_grid(const Dims& dims, Numbers numbers) {
  Dims sides;
  for (const std::int64_t side : dims) {
    if (side > 1) sides.push_back(side);
  }
  constexpr std::size_t kRank = 3;
  if (sides.size() != kRank || sides[2] != 2 || sides[0] < 3 || sides[1] < 3) return false;
  const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t column) {
    return numbers[static_cast<std::size_t>((i * sides[1] + j) * 2 + column)];
  };
  const auto depends = [&](std::int64_t column, bool on_first) {
    for (std::int64_t i = 0; i < sides[0]; ++i) {
      for (std::int64_t j = 0; j < sides[1]; ++j) {
        if (at(i, j, column) != (on_first ? at(i, 0, column) : at(0, j, column))) return false;
      }
    }
    return true;
  };
  return !is_constant(numbers) &&
         ((depends(0, true) && depends(1, false)) || (depends(0, false) && depends(1, true)));
}

template <class Number>
bool lower_triangle(const Dims& dims, StoredNumbers<Number> numbers) {
  if (dims.size() < 2 || dims.back() < 2 || dims.back() != dims[dims.size() - 2]) return false;
  const auto side = static_cast<std::size_t>(dims.back());
  if (side > numbers.size() / side) return false;
  const Number seen = numbers[0], hidden = numbers[1];
  for (std::size_t query = 0; query < side; ++query) {
    for (std::size_t key = 0; key < side; ++key) {
      if (numbers[query * side + key] != (key <= query ? seen : hidden)) return false;
    }
  }
  return seen != hidden;
}

}  // namespace

bool is_computed_table(const Dims& dims, Numbers numbers) {
  std::int64_t count = 1;
  for (const std::int64_t side : dims)
    count = side > 0 && count <= std::ssize(numbers) / side ? count * side : 0;
  if (numbers.size() == 0 || count != std::ssize(numbers)) return false;
  if (dims.size() < 2) return !dims.empty() && is_geometric(numbers);
  return is_mask(numbers) || is_grid(dims, numbers) ||
         has_sinusoids({.numbers = numbers, .columns = static_cast<std::size_t>(dims.back())});
}

bool is_lower_triangle(const Dims& dims, Numbers numbers) { return lower_triangle(dims, numbers); }
bool is_lower_triangle(const Dims& dims, StoredNumbers<std::uint8_t> numbers) {
  return lower_triangle(dims, numbers);
}

}  // namespace tbdsim
