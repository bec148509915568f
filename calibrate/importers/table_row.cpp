#include "calibrate/importers/table_row.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {

constexpr std::int64_t kLargest = 1'000'000'000;  // two of them still multiply to a 64-bit number

}  // namespace

const std::string& TableRow::text(std::string_view column) const { return fields_[csv_.column(column)]; }

void TableRow::fail(const std::string& what) const { throw SpecError(csv_.row_mark(), what); }

void TableRow::fail(std::string_view column, const std::string& expected) const {
  fail("column '" + std::string(column) + "' holds " + in_quotes(text(column)) + "; expected " + expected);
}

double TableRow::number(std::string_view column) const {
  const auto value = parse_number(text(column));
  if (!value) fail(column, "a number");
  return *value;
}

std::int64_t TableRow::count(std::string_view column) const {
  const double value = number(column);
  if (value < 0 || value > static_cast<double>(kLargest) || value != std::floor(value))
    fail(column, "a whole number, 0 to " + std::to_string(kLargest));
  return static_cast<std::int64_t>(value);
}

std::int64_t TableRow::size(std::string_view column) const {
  const std::int64_t value = count(column);
  if (value == 0) fail(column, "a whole number, 1 to " + std::to_string(kLargest));
  return value;
}

double TableRow::seconds(std::string_view column, double unit_s) const {
  const double value = number(column);
  if (value <= 0) fail(column, "a time above 0");
  return value * unit_s;
}

std::string TableRow::place() const {
  const Mark mark = csv_.row_mark();
  return std::filesystem::path(*mark.file).filename().string() + " line " + std::to_string(mark.line);
}

ImportedRow left_out(std::string reason) { return {.records = {}, .left_out = std::move(reason)}; }

std::string renamed(const TableRow& row, std::string_view column, std::span<const TableName> names) {
  const std::string& text = row.text(column);
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const TableName& name) { return name.in_table == text; });
  if (found != names.end()) return std::string(found->in_record);
  std::vector<std::string> known;
  for (const TableName& name : names) known.emplace_back(name.in_table);
  row.fail(column, "one of: " + joined(known) + did_you_mean(text, known));
}

std::string file_before_revision(const std::string& source) {
  const std::size_t at = source.find('@');
  const std::size_t colon = source.find(':');
  if (at == std::string::npos) return source;
  if (colon == std::string::npos) return source.substr(0, at) + ":" + source.substr(at);
  if (colon < at) return source;
  return source.substr(0, at) + source.substr(colon) + source.substr(at, colon - at);
}

std::string generation(std::string_view library, std::string_view version) {
  return std::string(library) + std::string(version.substr(0, version.find('.')));
}

RecordShape row_major_gemm(std::int64_t rows, std::int64_t outputs, std::int64_t inner) {
  RecordShape shape;
  shape.m = outputs;
  shape.n = rows;
  shape.k = inner;
  return shape;
}

}  // namespace tbdsim
