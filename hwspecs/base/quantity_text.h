// Quantities as text: "547.6 GB/s" <-> Quantity. The only unit tables of the project.
//
//   1 GB      1e9 B
//   1 GiB     2^30 B
//   1 bit     1/8 B
//   1 Gbit/s  125e6 B/s; rates are per second, of money also per hour ("USD/h")
#pragma once

#include <string>
#include <string_view>

#include "hwspecs/base/quantity.h"

namespace tbdsim {

// The value in SI base units of "<number> <unit of that dimension>". Throws std::invalid_argument with "what;
// what was expected" for another text and for a negative number.
[[nodiscard]] double parse_si(std::string_view text, const Dimension& dimension);

// With the prefix that leaves 1 to 999 before the point, four significant digits: "214.3 ms", "11.2 GiB".
[[nodiscard]] std::string format_si(double si, const Dimension& dimension);

// The value in one of its dimension's units, for columns that share one: in_unit(bytes, "GiB").
[[nodiscard]] double in_unit(double si, const Dimension& dimension, std::string_view unit);

template <Dimension D>
[[nodiscard]] double in_unit(const Quantity<D>& quantity, std::string_view unit) {
  return in_unit(quantity.si(), D, unit);
}

template <class Q>
[[nodiscard]] Q parse_quantity(std::string_view text) {
  return Q(parse_si(text, Q::dimension));
}

template <Dimension D>
[[nodiscard]] std::string to_text(const Quantity<D>& quantity) {
  return format_si(quantity.si(), D);
}

}  // namespace tbdsim
