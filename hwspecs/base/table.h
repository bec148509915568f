// A table of results that can be shown to people, written as CSV and written as JSON.
#pragma once

#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tbdsim {

enum class Format { table, json, csv };

// A cell: the text of the printed table, and the value of CSV and JSON. Without a value it is empty in CSV
// and null in JSON.
struct Cell {
  std::string text;
  std::variant<std::monostate, bool, double, std::string> value;
};

[[nodiscard]] Cell text_cell(std::string_view text);
[[nodiscard]] Cell number_cell(double value, std::string text);
[[nodiscard]] Cell count_cell(double value);  // with thousands separators: "25,557,032"
[[nodiscard]] Cell flag_cell(bool value);     // yes, no
[[nodiscard]] Cell none_cell();               // "-"; no value

// A ratio, 0.123 for programs, is shown to people in per cent.
inline constexpr double kPercent = 100;
[[nodiscard]] Cell percent_cell(double ratio, int digits = 1);              // "12.3 %"
[[nodiscard]] Cell signed_percent_cell(double ratio, int digits = 1);       // "+12.3 %"
[[nodiscard]] Cell bare_percent_cell(double ratio, int digits = 1);         // "12.3"; the header says %
[[nodiscard]] Cell signed_bare_percent_cell(double ratio, int digits = 1);  // "+12.3"

struct Column {
  std::string key;     // in CSV and JSON
  std::string header;  // for people, with the unit; empty: not shown to them
  bool right = false;  // numbers are set to the right
};

struct Table {
  std::string name;                  // of the list in JSON
  std::vector<std::string> preface;  // lines above the table
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::pair<std::string, Cell>> totals;  // below the table; "totals" in JSON
  std::vector<std::string> notes;                    // lines at the end
  std::map<std::string, int> counts;                 // under `counts_name` in JSON, for people in the notes
  std::string counts_name;
};

inline constexpr std::size_t kScreenWidth = 120;  // what tables are made for

// The text in lines of at most `width` characters, broken at spaces.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t width);

// Writes sheets of the same columns: for people one below the other, as CSV with one header, as JSON
// Ratios are 0 to 1, quantities in SI units, whole numbers without a fraction. JSON:
// {"schema_version": 2, "<name>": [rows of all sheets], "totals": [one object for each sheet]}.
void write_tables(std::ostream& out, std::span<const Table> tables, Format format);

// The text as a JSON string, in quotes. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(std::string_view text);

inline constexpr int kSchemaVersion = 2;  // of every JSON output; grows when a key changes its meaning

}  // namespace tbdsim
