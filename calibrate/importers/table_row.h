// One row of a published table, with accessors for an importer. Each throws SpecError with file, line,
// column, value and expectation where the value is not as expected; an importer never guesses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/record.h"
#include "hwspecs/base/csv.h"

namespace tbdsim {

class TableRow {
 public:
  TableRow(const CsvReader& csv, const std::vector<std::string>& fields) : csv_(csv), fields_(fields) {}

  [[nodiscard]] const std::string& text(std::string_view column) const;  // may be empty
  [[nodiscard]] std::int64_t size(std::string_view column) const;        // whole, 1 to 1e+9; "30.0" is 30
  [[nodiscard]] std::int64_t count(std::string_view column) const;       // whole, 0 to 1e+9
  [[nodiscard]] double number(std::string_view column) const;            // finite
  [[nodiscard]] double seconds(std::string_view column, double unit_s) const;  // finite, above 0

  // "neusight_gemm.csv line 17": the source of a record where the rows do not name theirs.
  [[nodiscard]] std::string place() const;
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail(std::string_view column, const std::string& expected) const;

 private:
  const CsvReader& csv_;
  const std::vector<std::string>& fields_;
};

inline constexpr double kMillisecond_s = 1e-3;
inline constexpr double kMicrosecond_s = 1e-6;

// The records of a row, or the reason why it is left out (counted in the notes of the import).
struct ImportedRow {
  std::vector<Record> records;
  std::string left_out;
};
[[nodiscard]] ImportedRow left_out(std::string reason);

// A name in a table and in a record; rows are left out where the second is empty.
struct TableName {
  std::string_view in_table;
  std::string_view in_record;
};
// The record's name for a cell; SpecError with "did you mean" for a name that is not in the list.
[[nodiscard]] std::string renamed(const TableRow& row, std::string_view column,
                                  std::span<const TableName> names);

// "owner/repository@revision:file" -> "owner/repository:file@revision", as records name sources.
[[nodiscard]] std::string file_before_revision(const std::string& source);

// "cudnn" and "7.6.2.24" -> "cudnn7".
[[nodiscard]] std::string generation(std::string_view library, std::string_view version);

// Library matrix product of row-major matrices, y[rows x outputs] = x[rows x inner] w, in the column-major
// convention of record_shape.h: cuBLAS computes the transpose of y, so m counts outputs and n rows.
[[nodiscard]] RecordShape row_major_gemm(std::int64_t rows, std::int64_t outputs, std::int64_t inner);

}  // namespace tbdsim
