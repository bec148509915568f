#include "simulate/sweep/row_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/table.h"

namespace tbdsim {
namespace {

// Appends six digits, as "%.6g" prints them, and whole numbers in full: a rounded largest batch may be one
// that does not fit.
void append_number(std::string& line, double number) {
  constexpr int kDigits = 6;
  constexpr double kLargestWhole = 1e15;  // of which doubles are exact
  std::array<char, 32> text{};
  if (number == std::trunc(number) && std::abs(number) < kLargestWhole) {
    line.append(text.data(),
                std::to_chars(text.data(), text.data() + text.size(), static_cast<std::int64_t>(number)).ptr);
    return;
  }
  char* const end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::general, kDigits).ptr;
  line.append(text.data(), end);
}

std::string csv_start(const SweepPoint& point) {
  std::string line;
  for (const std::string& value : point.values) {
    append_csv_field(line, value);
    line += ',';
  }
  return line;
}

std::string csv_line(const Sweep& sweep, const SweepPoint& point) {
  std::string line = csv_start(point);
  for (std::size_t m = 0; m < sweep.metrics.size(); ++m) {
    if (point.metrics[m]) append_number(line, *point.metrics[m]);
    line += ',';
  }
  append_csv_field(line, point.status);
  return line + '\n';
}

std::string json_start(const Sweep& sweep, const SweepPoint& point) {
  std::string line = "{";
  for (std::size_t a = 0; a < point.values.size(); ++a) {
    const std::string& value = point.values[a];
    line += json_text(sweep.axes[a].key()) + ": " + (parse_number(value) ? value : json_text(value)) + ", ";
  }
  return line;
}

std::string json_line(const Sweep& sweep, const SweepPoint& point) {
  std::string line = json_start(sweep, point);
  for (std::size_t m = 0; m < sweep.metrics.size(); ++m) {
    const std::optional<double>& value = point.metrics[m];
    line += json_text(sweep.metrics[m]->name) + ": ";
    value ? append_number(line, *value) : static_cast<void>(line += "null");
    line += ", ";
  }
  return line + "\"status\": " + json_text(point.status) + "}\n";
}

}  // namespace

std::string header_line(const Sweep& sweep, RowFormat format) {
  if (format == RowFormat::json_lines) return "";
  std::string line;
  for (const SweepAxis& axis : sweep.axes) {
    append_csv_field(line, axis.key());
    line += ',';
  }
  for (const Metric* metric : sweep.metrics) line += std::string(metric->name) + ',';
  return line + "status\n";
}

std::string row_line(const Sweep& sweep, const SweepPoint& point, RowFormat format) {
  return format == RowFormat::csv ? csv_line(sweep, point) : json_line(sweep, point);
}

bool is_row_of(const Sweep& sweep, std::int64_t point, RowFormat format, std::string_view line) {
  const SweepPoint axes{.values = values_at(sweep, point), .metrics = {}, .status = {}};
  const std::string start = format == RowFormat::csv ? csv_start(axes) : json_start(sweep, axes);
  return line.starts_with(start) && line.size() > start.size() + sweep.metrics.size();
}

}  // namespace tbdsim
