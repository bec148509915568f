// Tells tables that a network computes once from parameters by the numbers of an ONNX tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tbdsim {

// Numbers where they lie in a file: little-endian, one after another, at any address.
template <class Number>
class StoredNumbers {
 public:
  explicit StoredNumbers(std::string_view bytes) : bytes_(bytes) {}
  StoredNumbers(const std::vector<Number>& numbers)  // not explicit: these are such numbers
      : bytes_(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)) {}

  [[nodiscard]] std::size_t size() const { return bytes_.size() / sizeof(Number); }
  [[nodiscard]] Number operator[](std::size_t i) const {  // i < size()
    Number number{};
    std::memcpy(&number, bytes_.data() + i * sizeof(Number), sizeof(Number));
    return number;
  }

 private:
  std::string_view bytes_;
};

// Whether numbers follow from their place, as no trained ones do: a mask (0 and one large negative number),
// sines and cosines of the row's number, a geometric series of frequencies, or coordinates of a grid.
[[nodiscard]] bool is_computed_table(const std::vector<std::int64_t>& dims, StoredNumbers<float> numbers);

// Whether the last two sides are a square of which the lower triangle, with the diagonal, has one value and
// the rest another: each query sees the keys before it.
[[nodiscard]] bool is_lower_triangle(const std::vector<std::int64_t>& dims, StoredNumbers<float> numbers);
[[nodiscard]] bool is_lower_triangle(const std::vector<std::int64_t>& dims,
                                     StoredNumbers<std::uint8_t> numbers);

}  // namespace tbdsim
