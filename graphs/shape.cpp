#include "graphs/shape.h"

namespace tbdsim {

std::int64_t elements_per_row(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t dim : shape.dims) product = checked_multiply(product, dim);
  return product;
}

Size elements(const Shape& shape) { return shape.rows * elements_per_row(shape); }

std::string to_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t dim : shape.dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text.empty() ? "scalar" : text;
}

}  // namespace tbdsim
