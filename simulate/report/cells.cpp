#include "simulate/report/cells.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"

namespace tbdsim {

std::string three_digits(double number) {
  if (number == 0) return "0";
  const std::string scientific =
      fmt::format("{:.2e}", number);  // rounded: its exponent is that of what is shown
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  constexpr int kLeastExponent = -4;
  return exponent < kLeastExponent ? scientific : fmt::format("{:.{}f}", number, std::max(0, 2 - exponent));
}

Cell gib_cell(Bytes bytes, int digits) {
  return number_cell(bytes.si(), fmt::format("{:.{}f}", in_unit(bytes, "GiB"), digits));
}

}  // namespace tbdsim
