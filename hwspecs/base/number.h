// Numbers as people write them, read strictly.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tbdsim {

// A decimal number: optional '-', digits without leading zeros, optional fraction and exponent. No '+', no
// hex, no octal-looking "010", no nan, no inf, nothing that does not fit a finite double.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

// A whole number in the same notation, without fraction and exponent, that fits 64 bits.
[[nodiscard]] std::optional<std::int64_t> parse_whole_number(std::string_view text);

// The integer that a number is; none where it has a fraction or more digits than a double holds (2^53).
[[nodiscard]] std::optional<std::int64_t> as_whole_number(double value);

}  // namespace tbdsim
