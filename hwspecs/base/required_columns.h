// Columns that a table must have, all that it lacks in one error.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hwspecs/base/csv.h"

namespace tbdsim {

// Throws SpecError naming every column of these that the table lacks; of a single one with "did you mean".
inline void require_columns(const CsvReader& reader, std::span<const std::string_view> names) {
  std::string missing;
  std::string_view first;
  for (const std::string_view name : names) {
    if (reader.find_column(name)) continue;
    if (missing.empty()) first = name;
    missing.append(missing.empty() ? "'" : ", '").append(name).append("'");
  }
  if (missing.empty()) return;
  const bool one = missing.find(',') == std::string::npos;
  if (one) static_cast<void>(reader.column(first));
  throw SpecError({reader.row_mark().file, 1, 1}, "columns " + missing + " are missing");
}

}  // namespace tbdsim
