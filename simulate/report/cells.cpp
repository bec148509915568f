#include "simulate/report/cells.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "hwspecs/base/quantity_text.h"
#include "simulate/prediction/metrics.h"
#include "simulate/report/target_tables.h"

namespace tbdsim {

std::string three_digits(double number) {
  if (number == 0) return "0";
  const std::string scientific =
      fmt::format("{:.2e}", number);  // rounded: its exponent is that of what is shown
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  constexpr int kLeastFixed = -4;
  return exponent < kLeastFixed ? scientific : fmt::format("{:.{}f}", number, std::max(0, 2 - exponent));
}

Cell gib_cell(Bytes bytes, int digits) {
  return number_cell(bytes.si(), fmt::format("{:.{}f}", in_unit(bytes, "GiB"), digits));
}

std::string metric_text(double value, const std::string& unit) {
  constexpr double kLong = 90;  // seconds that are easier to read in minutes, hours or days
  if (unit == kRatio) return fmt::format("{:.4g} %", kPercent * value);
  if (unit == "s") return value < kLong ? to_text(Seconds(value)) : duration_text(Seconds(value), 4);
  if (unit == "B") return to_text(Bytes(value));
  if (unit == "B/s") return to_text(BytesPerSecond(value));
  if (unit == "flop/s") return to_text(FlopsPerSecond(value));
  if (unit == "J") return to_text(Joules(value));
  if (unit == "tokens/s") return fmt::format("{:.0f} {}", value, unit);
  if (unit == "USD/s") return to_text(DollarsPerSecond(value));
  return fmt::format("{:.4g} {}", value, unit);
}

}  // namespace tbdsim
