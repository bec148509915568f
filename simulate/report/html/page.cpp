#include "simulate/report/html/page.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hwspecs/base/error.h"
#include "hwspecs/base/file.h"
#include "simulate/report/html/chart_json.h"

namespace tbdsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uintmax_t kMostAssetBytes = 20'000'000;

// JSON that may stand in a script element: without '<' nothing in it ends the element.
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

// Numbers the figures from `first_chart` on. Returns the number of the next one.
std::size_t write_view(std::ostream& out, const View& view, std::size_t first_chart) {
  out << "<div class=\"view\" data-name=\"" << html_text(view.name) << "\">\n<div class=\"charts\">\n";
  std::size_t number = first_chart;
  for (const Chart& chart : view.charts) {
    out << fmt::format("<figure class=\"chart{}\" data-chart=\"{}\"><figcaption>{}</figcaption></figure>\n",
                       chart.wide ? " wide" : "", number++, html_text(chart.title));
  }
  out << "</div>\n";
  for (const Table& table : view.tables) write_table(out, table);
  out << "</div>\n";
  return number;
}

void write_head(std::ostream& out, const Page& page, const PageAssets& assets) {
  // The policy lets the page run its own scripts and load nothing; with controls it may query the server it
  // came from.
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

PageAssets read_page_assets(const std::filesystem::path& data_dir) {
  const std::filesystem::path folder = data_dir / "simulate/report/html/assets";
  const std::filesystem::path plotly = folder / "plotly.min.js.gz";
  if (!std::filesystem::exists(plotly)) {
    throw UsageError(
        fmt::format("{} is missing; expected Plotly there for the charts, which {} gets from PyPI",
                    plotly.string(), (folder / "get_plotly.sh").string()));
  }
  const std::string controls = read_file(folder / "controls.js", kMostAssetBytes);
  return {.style = read_file(folder / "page.css", kMostAssetBytes),
          .script = read_file(folder / "page.js", kMostAssetBytes),
          .plotly = read_file(plotly, kMostAssetBytes),
          .live = controls + read_file(folder / "live.js", kMostAssetBytes),
          .layouts = controls + read_file(folder / "layouts.js", kMostAssetBytes)};
}

std::string sections_html(const std::vector<Section>& sections) {
  std::ostringstream out;
  std::size_t chart = 0;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    out << fmt::format("<section id=\"s{}\"><h2>{}</h2>\n", i + 1, html_text(sections[i].title));
    for (const std::string& paragraph : sections[i].text) out << "<p>" << html_text(paragraph) << "</p>\n";
    for (const View& view : sections[i].views) chart = write_view(out, view, chart);
    out << "</section>\n";
  }
  return out.str();
}

void write_page(std::ostream& out, const Page& page, const PageAssets& assets) {
  const std::string charts = charts_json(page.sections).dump(-1, ' ', false, Json::error_handler_t::replace);
  write_head(out, page, assets);
  out << "<body>\n<header><h1>" << html_text(page.title) << "</h1>\n";
  write_lines(out, page.summary, "summary");
  write_navigation(out, page);
  out << "</header>\n<main>\n"
      << sections_html(page.sections)
      << "</main>\n<noscript><p>The charts of this page need JavaScript; its tables do not.</p></noscript>\n"
      << "<script type=\"application/json\" id=\"charts\">" << script_text(charts) << "</script>\n"
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
