// The shape of a tensor: rows (the leading dimension, which depends on the batch) times fixed dimensions.
// An image batch is {rows = batch, dims = {channels, height, width}}; regions of interest are rows = 128 x
// batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graphs/size.h"

namespace tbdsim {

// Far from overflow: layers may add and multiply a few dimensions unchecked by small numbers.
inline constexpr std::int64_t kLargestDimension = 1'000'000'000;
inline constexpr std::size_t kMostDimensions = 8;

struct Shape {
  Size rows;
  std::vector<std::int64_t> dims;

  friend bool operator==(const Shape&, const Shape&) = default;
};

[[nodiscard]] std::int64_t elements_per_row(const Shape& shape);
[[nodiscard]] Size elements(const Shape& shape);
[[nodiscard]] std::string to_text(const Shape& shape);  // "64x112x112": the dimensions without the rows

}  // namespace tbdsim
