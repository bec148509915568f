#include "simulate/sweep/row_text.h"

#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "hwspecs/base/number.h"

namespace tbdsim {
namespace {

void append_csv(std::string& line, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += field;
    return;
  }
  line += '"';
  for (const char c : field) line.append(c == '"' ? 2 : 1, c);
  line += '"';
}

void append_json_text(std::string& line, std::string_view text) {
  constexpr unsigned char kFirstPrintable = 0x20;
  line += '"';
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < kFirstPrintable) {
      fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned char>(c));
      continue;
    }
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

std::string csv_start(const SweepPoint& point) {
  std::string line;
  for (const std::string& value : point.values) {
    append_csv(line, value);
    line += ',';
  }
  return line;
}

std::string csv_line(const Sweep& sweep, const SweepPoint& point) {
  std::string line = csv_start(point);
  for (std::size_t m = 0; m < sweep.metrics.size(); ++m) {
    if (point.metrics[m]) fmt::format_to(std::back_inserter(line), "{:.6g}", *point.metrics[m]);
    line += ',';
  }
  append_csv(line, point.status);
  return line + '\n';
}

std::string json_start(const Sweep& sweep, const SweepPoint& point) {
  std::string line = "{";
  for (std::size_t a = 0; a < point.values.size(); ++a) {
    append_json_text(line, sweep.axes[a].key());
    line += ": ";
    if (parse_number(point.values[a])) {
      line += point.values[a];
    } else {
      append_json_text(line, point.values[a]);
    }
    line += ", ";
  }
  return line;
}

std::string json_line(const Sweep& sweep, const SweepPoint& point) {
  std::string line = json_start(sweep, point);
  for (std::size_t m = 0; m < sweep.metrics.size(); ++m) {
    append_json_text(line, sweep.metrics[m]->name);
    line += ": " + (point.metrics[m] ? fmt::format("{:.6g}", *point.metrics[m]) : "null") + ", ";
  }
  line += "\"status\": ";
  append_json_text(line, point.status);
  return line + "}\n";
}

}  // namespace

std::string header_line(const Sweep& sweep, RowFormat format) {
  if (format == RowFormat::json_lines) return "";
  std::string line;
  for (const SweepAxis& axis : sweep.axes) {
    append_csv(line, axis.key());
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
