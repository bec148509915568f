#include "simulate/report/html/page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kMarkNames = {"line", "point", "bar", "span", "box"};
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uintmax_t kMostAssetBytes = 20'000'000;

// Five digits are more than a chart shows, and a third of the text.
Json short_numbers(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) {
    const std::string text = fmt::format("{:.5g}", number);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    list.push_back(rounded);
  }
  return list;
}

// Strings that repeat are written once: [["conv1", "conv2"], [0, 0, 1]].
Json word_list(const std::vector<std::string>& words) {
  Json distinct = Json::array();
  Json indices = Json::array();
  std::map<std::string_view, std::size_t> known;
  for (const std::string& word : words) {
    const auto [found, added] = known.emplace(word, known.size());
    if (added) distinct.push_back(word);
    indices.push_back(found->second);
  }
  return Json::array({distinct, indices});
}

Json json_of(const Series& series) {
  Json object{{"mark", kMarkNames[static_cast<std::size_t>(series.mark)]},
              {"name", series.name},
              {"colour", series.colour}};
  const auto add = [&](const char* key, const std::vector<double>& numbers) {
    if (!numbers.empty()) object[key] = short_numbers(numbers);
  };
  add("x", series.x);
  add("y", series.y);
  add("low", series.low);
  add("high", series.high);
  add("start", series.start);
  add("size", series.size);
  if (!series.categories.empty()) object["categories"] = word_list(series.categories);
  if (!series.hover.empty()) object["hover"] = word_list(series.hover);
  if (series.dashed) object["dashed"] = true;
  return object;
}

Json json_of(const Axis& axis) {
  Json object{{"title", axis.title}, {"log", axis.logarithmic}};
  if (axis.from) object["from"] = *axis.from;
  if (axis.to) object["to"] = *axis.to;
  return object;
}

Json json_of(const Chart& chart) {
  Json object{{"title", chart.title},     {"x", json_of(chart.x)},  {"y", json_of(chart.y)},
              {"stacked", chart.stacked}, {"square", chart.square}, {"series", Json::array()}};
  for (const Series& series : chart.series) object["series"].push_back(json_of(series));
  return object;
}

// As a script element may hold it: nothing in it ends the element.
std::string script_text(std::string_view json) {
  std::string text;
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

void write_lines(std::ostream& out, const std::vector<std::string>& lines, std::string_view sort) {
  if (lines.empty()) return;
  out << "<p class=\"" << sort << "\">";
  for (const std::string& line : lines) out << html_text(line) << (line.empty() ? "" : "\n");
  out << "</p>\n";
}

void write_table(std::ostream& out, const Table& table) {
  write_lines(out, table.preface, "preface");
  out << "<div class=\"table\"><table><thead><tr>";
  for (const Column& column : table.columns) {
    if (column.header.empty()) continue;
    out << (column.right ? "<th class=\"right\">" : "<th>") << html_text(column.header) << "</th>";
  }
  out << "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out << "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (table.columns[c].header.empty()) continue;
      const double* number = std::get_if<double>(&row[c].value);
      out << (table.columns[c].right ? "<td class=\"right\"" : "<td");
      if (number != nullptr) out << fmt::format(" data-value=\"{:.6g}\"", *number);
      out << '>' << html_text(row[c].text) << "</td>";
    }
    out << "</tr>\n";
  }
  out << "</tbody></table></div>\n";
  write_lines(out, table.notes, "notes");
}

void write_view(std::ostream& out, const View& view, Json& charts) {
  out << "<div class=\"view\" data-name=\"" << html_text(view.name) << "\">\n<div class=\"charts\">\n";
  for (const Chart& chart : view.charts) {
    out << fmt::format("<figure class=\"chart{}\" data-chart=\"{}\"><figcaption>{}</figcaption></figure>\n",
                       chart.wide ? " wide" : "", charts.size(), html_text(chart.title));
    charts.push_back(json_of(chart));
  }
  out << "</div>\n";
  for (const Table& table : view.tables) write_table(out, table);
  out << "</div>\n";
}

void write_section(std::ostream& out, const Section& section, std::size_t number, Json& charts) {
  out << fmt::format("<section id=\"s{}\"><h2>{}</h2>\n", number, html_text(section.title));
  for (const std::string& paragraph : section.text) out << "<p>" << html_text(paragraph) << "</p>\n";
  for (const View& view : section.views) write_view(out, view, charts);
  out << "</section>\n";
}

void write_head(std::ostream& out, const Page& page, const PageAssets& assets) {
  // The policy lets the page run its own script and load nothing, from wherever it is opened; with controls
  // it may ask the server it came from.
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
         "'unsafe-inline'; "
         "style-src 'unsafe-inline'; img-src data: blob:"
      << (page.controls.empty() ? "" : "; connect-src 'self'") << "\">\n"
      << "<link rel=\"icon\" href=\"data:,\">\n<title>" << html_text(page.title) << "</title>\n<style>\n"
      << assets.style << "</style>\n</head>\n";
}

void write_navigation(std::ostream& out, const Page& page) {
  out << "<nav>";
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    out << fmt::format("<a href=\"#s{}\">{}</a>\n", i + 1, html_text(page.sections[i].title));
  }
  out << "</nav>\n";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    unsigned group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= count ? kDigits[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return text;
}

std::string from_base64(std::string_view text) {
  std::string bytes;
  unsigned group = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    group = group << 6U | static_cast<unsigned>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> static_cast<unsigned>(bits) & 255U);
  }
  return bytes;
}

PageAssets read_page_assets(const std::filesystem::path& data_dir) {
  const std::filesystem::path folder = data_dir / "simulate/report/html/assets";
  const std::filesystem::path plotly = folder / "plotly.min.js.gz";
  if (!std::filesystem::exists(plotly)) {
    throw UsageError(
        fmt::format("{} is missing; expected Plotly there for the charts, which {} gets from PyPI",
                    plotly.string(), (folder / "get_plotly.sh").string()));
  }
  return {.style = read_file(folder / "page.css", kMostAssetBytes),
          .script = read_file(folder / "page.js", kMostAssetBytes),
          .plotly = read_file(plotly, kMostAssetBytes),
          .live = read_file(folder / "live.js", kMostAssetBytes)};
}

SectionText text_of(const std::vector<Section>& sections) {
  Json charts = Json::array();
  std::ostringstream html;
  for (std::size_t i = 0; i < sections.size(); ++i) write_section(html, sections[i], i + 1, charts);
  return {html.str(), charts.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

void write_page(std::ostream& out, const Page& page, const PageAssets& assets) {
  const SectionText sections = text_of(page.sections);
  write_head(out, page, assets);
  out << "<body>\n<header><h1>" << html_text(page.title) << "</h1>\n";
  write_lines(out, page.summary, "summary");
  write_navigation(out, page);
  out << "</header>\n<main>\n"
      << sections.html
      << "</main>\n<noscript><p>The charts of this page need JavaScript; its tables do not.</p></noscript>\n"
      << "<script type=\"application/json\" id=\"charts\">" << script_text(sections.charts) << "</script>\n"
      << "<script type=\"application/gzip\" id=\"plotly\">" << base64(assets.plotly) << "</script>\n"
      << "<script>\n"
      << assets.script << "</script>\n";
  if (!page.controls.empty()) {
    out << "<script type=\"application/json\" id=\"controls\">" << script_text(page.controls) << "</script>\n"
        << "<script>\n"
        << assets.live << "</script>\n";
  }
  out << "</body>\n</html>\n";
}

}  // namespace tbdsim
