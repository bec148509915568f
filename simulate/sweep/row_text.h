// Points of a sweep as text: CSV or JSON lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simulate/sweep/sweep.h"

namespace tbdsim {

enum class RowFormat { csv, json_lines };

// The names of the columns, with a line's end; empty for JSON lines.
[[nodiscard]] std::string header_line(const Sweep& sweep, RowFormat format);

// A point, with a line's end: values of the axes, metrics (six digits; empty or null where there is no
// value), status.
[[nodiscard]] std::string row_line(const Sweep& sweep, const SweepPoint& point, RowFormat format);

// True where `line` (with its end) starts with the axes' values of point number `point` and has as many
// fields as a row.
[[nodiscard]] bool is_row_of(const Sweep& sweep, std::int64_t point, RowFormat format, std::string_view line);

}  // namespace tbdsim
