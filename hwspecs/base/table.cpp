#include "hwspecs/base/table.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/number.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<Value, double>) {
          const auto whole = as_whole_number(value);
          return whole ? Json(*whole) : Json(value);
        } else {
          return value;
        }
      },
      cell.value);
}

std::string csv_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell.value)) return *text;
  if (const auto* number = std::get_if<double>(&cell.value)) return fmt::format("{}", *number);
  if (const auto* flag = std::get_if<bool>(&cell.value)) return *flag ? "true" : "false";
  return "";
}

void write_table(std::ostream& out, const Table& table) {
  for (const std::string& line : table.preface) out << line << '\n';
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = table.columns[c].header.size();
    for (const auto& row : table.rows) width = std::max(width, row[c].text.size());
    widths.push_back(table.columns[c].header.empty() ? 0 : width);
  }
  const auto last = static_cast<std::size_t>(
      std::find_if(widths.rbegin(), widths.rend(), [](std::size_t width) { return width > 0; }).base() -
      widths.begin() - 1);
  const auto write_line = [&](auto text_of) {
    std::string line;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (widths[c] == 0) continue;
      if (!line.empty()) line += "  ";
      if (c == last && !table.columns[c].right) {  // continued on the next line where it is too long
        const std::size_t indent = line.size();
        const auto parts = wrapped(text_of(c), kScreenWidth > indent + 16 ? kScreenWidth - indent : 16);
        for (std::size_t i = 0; i < parts.size(); ++i)
          line += (i == 0 ? "" : "\n" + std::string(indent, ' ')) + parts[i];
      } else {
        line += table.columns[c].right ? fmt::format("{:>{}}", text_of(c), widths[c])
                                       : fmt::format("{:<{}}", text_of(c), widths[c]);
      }
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  write_line([&](std::size_t c) { return table.columns[c].header; });
  for (const auto& row : table.rows) {
    write_line([&](std::size_t c) { return row[c].text; });
  }
  std::size_t name_width = 0;
  for (const auto& [name, cell] : table.totals) name_width = std::max(name_width, name.size());
  if (!table.totals.empty()) out << '\n';
  for (const auto& [name, cell] : table.totals)
    out << fmt::format("{:<{}}  {}\n", name, name_width, cell.text);
  if (!table.notes.empty()) out << '\n';
  for (const std::string& note : table.notes) out << note << '\n';
}

void write_csv(std::ostream& out, std::span<const Table> tables) {
  std::vector<std::string> fields;
  for (const Column& column : tables[0].columns) fields.push_back(column.key);
  write_csv_row(out, fields);
  for (const Table& table : tables) {
    for (const auto& row : table.rows) {
      fields.clear();
      for (const Cell& cell : row) fields.push_back(csv_of(cell));
      write_csv_row(out, fields);
    }
  }
}

void write_json(std::ostream& out, std::span<const Table> tables) {
  Json document{{"schema_version", kSchemaVersion}, {tables[0].name, Json::array()}};
  for (const Table& table : tables) {
    for (const auto& row : table.rows) {
      Json object;
      for (std::size_t c = 0; c < row.size(); ++c) object[table.columns[c].key] = json_of(row[c]);
      document[table.name].push_back(std::move(object));
    }
    Json totals;
    for (const auto& [name, cell] : table.totals) totals[name] = json_of(cell);
    if (!totals.empty()) document["totals"].push_back(std::move(totals));
    if (!table.counts_name.empty()) document[table.counts_name] = table.counts;
  }
  out << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = space + 1;
  }
  return lines;
}

std::string json_text(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Cell text_cell(std::string_view text) { return {std::string(text), std::string(text)}; }
Cell number_cell(double value, std::string text) { return {std::move(text), value}; }
Cell flag_cell(bool value) { return {value ? "yes" : "no", value}; }
Cell none_cell() { return {"-", std::monostate{}}; }

Cell percent_cell(double ratio, int digits) {
  return number_cell(ratio, fmt::format("{:.{}f} %", kPercent * ratio, digits));
}
Cell signed_percent_cell(double ratio, int digits) {
  return number_cell(ratio, fmt::format("{:+.{}f} %", kPercent * ratio, digits));
}
Cell bare_percent_cell(double ratio, int digits) {
  return number_cell(ratio, fmt::format("{:.{}f}", kPercent * ratio, digits));
}
Cell signed_bare_percent_cell(double ratio, int digits) {
  return number_cell(ratio, fmt::format("{:+.{}f}", kPercent * ratio, digits));
}

Cell count_cell(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return {digits, value};
}

void write_tables(std::ostream& out, std::span<const Table> tables, Format format) {
  if (tables.empty()) return;
  switch (format) {
    case Format::table:
      for (std::size_t i = 0; i < tables.size(); ++i) {
        if (i > 0) out << '\n';
        write_table(out, tables[i]);
      }
      return;
    case Format::csv:
      write_csv(out, tables);
      return;
    case Format::json:
      write_json(out, tables);
      return;
  }
}

}  // namespace tbdsim
