// Cells with numbers rounded for the screen.
#pragma once

#include <string>

#include "hwspecs/base/quantity.h"
#include "hwspecs/base/table.h"

namespace tbdsim {

// Three significant digits, or all before the point: "1.23e-05", "0.00123", "0.123", "1.23", "12.3", "1234".
[[nodiscard]] std::string three_digits(double number);

// A metric's value with its unit as people read it; ratios in per cent.
[[nodiscard]] std::string metric_text(double value, const std::string& unit);

// Number of GiB without the unit, which the column's header has.
[[nodiscard]] Cell gib_cell(Bytes bytes, int digits);

}  // namespace tbdsim
