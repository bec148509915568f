// What the numbers of an ONNX tensor tell of it: tables that a network computes once are no parameters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tbdsim {

// Whether numbers follow from their place, as no trained ones do: a mask (0 and one large negative number),
// sines and cosines of the row's number, a geometric series of frequencies, or coordinates of a grid.
[[nodiscard]] bool is_computed_table(const std::vector<std::int64_t>& dims, std::span<const float> numbers);

// Whether the last two sides are a square of which the lower triangle, with the diagonal, has one value and
// the rest another: each query sees the keys before it.
[[nodiscard]] bool is_lower_triangle(const std::vector<std::int64_t>& dims, std::span<const float> numbers);
[[nodiscard]] bool is_lower_triangle(const std::vector<std::int64_t>& dims,
                                     std::span<const std::uint8_t> numbers);

}  // namespace tbdsim
