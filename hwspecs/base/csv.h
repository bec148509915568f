// RFC 4180 CSV: streaming reader with strict errors, and a row writer. Standard library only, because
// tbd-measure must build with nothing but CUDA and the C++ library.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/error.h"

namespace tbdsim {

// Reads a table with a header row. Accepts LF and CRLF, a UTF-8 byte order mark, quoted fields with commas,
// doubled quotes and line breaks. Empty lines are skipped. Throws SpecError naming file and line for: an
// empty file, an empty or duplicate column name, an unterminated or misplaced quote, a NUL byte, bytes that
// are not UTF-8, a row with too few or too many fields, a field longer than 1 MiB.
class CsvReader {
 public:
  CsvReader(std::istream& in, std::string file_name);

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  // Index of a column; SpecError with "did you mean" when the table has none of that name.
  [[nodiscard]] std::size_t column(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> find_column(std::string_view name) const;

  // Reads the next row into `fields` (as many as there are columns); false at the end.
  bool next(std::vector<std::string>& fields);
  // File and line where the last row that next() returned begins.
  [[nodiscard]] Mark row_mark() const { return {file_, row_line_, 1}; }

 private:
  bool read_record(std::vector<std::string>& fields);

  std::istream& in_;
  std::shared_ptr<const std::string> file_;
  std::vector<std::string> columns_;
  int line_ = 1;
  int row_line_ = 1;
};

// Appends one field to a line, quoted where it needs it.
void append_csv_field(std::string& line, std::string_view field);

// One line, fields quoted where they need it, ended by "\n".
void write_csv_row(std::ostream& out, std::span<const std::string> fields);

}  // namespace tbdsim
