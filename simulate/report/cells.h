// Numbers of predictions as people read them.
#pragma once

#include <string>

#include "hwspecs/base/quantity.h"
#include "hwspecs/base/table.h"

namespace tbdsim {

// Three significant digits, or all before the point: "1.23e-05", "0.00123", "0.123", "1.23", "12.3", "1234".
[[nodiscard]] std::string three_digits(double number);

// In GiB; the header says so.
[[nodiscard]] Cell gib_cell(Bytes bytes, int digits);

}  // namespace tbdsim
