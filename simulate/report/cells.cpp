#include "simulate/report/cells.h"

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"

namespace tbdsim {

std::string three_digits(double number) {
  return fmt::format("{:.{}f}", number, number >= 100 ? 0 : number >= 10 ? 1 : 2);
}

Cell gib_cell(Bytes bytes, int digits) {
  return number_cell(bytes.si(), fmt::format("{:.{}f}", in_unit(bytes, "GiB"), digits));
}

}  // namespace tbdsim
