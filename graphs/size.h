// A size that grows with the batch: fixed + per_sample x batch, in int64. Sums and products that do not fit
// throw std::overflow_error, so that no model file can make a size wrap around.
#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>

namespace tbdsim {

[[nodiscard]] inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw std::overflow_error("a size beyond 64 bits");
  return sum;
}

[[nodiscard]] inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw std::overflow_error("a size beyond 64 bits");
  return product;
}

struct Size {
  std::int64_t fixed = 0;
  std::int64_t per_sample = 0;

  [[nodiscard]] double at(double batch) const {
    return static_cast<double>(fixed) + static_cast<double>(per_sample) * batch;
  }

  friend auto operator<=>(const Size&, const Size&) = default;
  friend Size operator+(const Size& a, const Size& b) {
    return {checked_add(a.fixed, b.fixed), checked_add(a.per_sample, b.per_sample)};
  }
  friend Size operator*(const Size& a, std::int64_t b) {
    return {checked_multiply(a.fixed, b), checked_multiply(a.per_sample, b)};
  }
  friend Size operator*(std::int64_t a, const Size& b) { return b * a; }
  Size& operator+=(const Size& other) { return *this = *this + other; }
};

[[nodiscard]] constexpr Size fixed_size(std::int64_t n) { return {n, 0}; }

}  // namespace tbdsim
