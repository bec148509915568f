#include "hwspecs/base/number.h"

#include <charconv>
#include <cmath>

namespace tbdsim {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Drops leading digits and returns their number.
std::size_t eat_digits(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  text.remove_prefix(n);
  return n;
}

// Drops "-12" from the front; false when there is no whole number or one with a leading zero.
bool eat_whole(std::string_view& text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool zero = text.starts_with('0');
  const std::size_t digits = eat_digits(text);
  return digits == 1 || (digits > 1 && !zero);
}

template <class T>
std::optional<T> convert(std::string_view text) {
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  std::string_view rest = text;
  if (!eat_whole(rest)) return std::nullopt;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    if (eat_digits(rest) == 0) return std::nullopt;
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
    if (eat_digits(rest) == 0) return std::nullopt;
  }
  if (!rest.empty()) return std::nullopt;
  const auto value = convert<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> parse_whole_number(std::string_view text) {
  std::string_view rest = text;
  if (!eat_whole(rest) || !rest.empty()) return std::nullopt;
  return convert<std::int64_t>(text);
}

std::optional<std::int64_t> as_whole_number(double value) {
  constexpr double kMost = 9'007'199'254'740'992;  // 2^53
  if (std::trunc(value) != value || std::abs(value) > kMost) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

}  // namespace tbdsim
