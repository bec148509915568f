// A page of charts and tables as one HTML file that needs nothing else: it opens offline, on a phone, in
// print, dark and light. `tbd-sim report` and `tbd-sim validate --html` fill a Page; here it becomes text.
//
//   Page -> sections -> views (one is shown, a list chooses) -> charts, tables
//
// Charts go into the page as the structs below in JSON; web/page.js, which comes with them, draws them with
// Plotly (https://plotly.com/javascript, MIT licence). What Plotly is told is decided there and nowhere else.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/table.h"

namespace tbdsim {

// line: y over x, with the area between low and high; point: a mark at x, y; bar: of length x for each
// category; span: from `start` on for x, in the row of its category; box: how x is distributed in the row of
// its category.
enum class ChartMark { line, point, bar, span, box };

// Which numbers a mark needs is said above; the others stay empty. All that are given are equally long.
struct Series {
  ChartMark mark = ChartMark::line;
  std::string name{};
  int colour = 0;  // of the palette: the same on all charts for what is the same
  std::vector<double> x{};
  std::vector<double> y{};
  std::vector<std::string> categories{};
  std::vector<double> low{}, high{};  // of y; points get error bars
  std::vector<double> start{};        // of spans
  std::vector<double> size{};         // of points: relative area
  std::vector<std::string> hover{};   // said of each when it is pointed at, above its numbers
  bool dashed = false;
};

struct Axis {
  std::string title{};  // with the unit: "throughput, images/s"
  bool logarithmic = false;
  std::optional<double> from{}, to{};  // where the data does not decide
};

struct Chart {
  std::string title{};
  Axis x{}, y{};
  std::vector<Series> series{};
  bool wide = false;     // takes the whole width of the page
  bool stacked = false;  // bars of one category
  bool square = false;   // a decade of y is as long as one of x
};

struct View {
  std::string name{};  // empty where a section has one
  std::vector<Chart> charts{};
  std::vector<Table> tables{};
};

struct Section {
  std::string title{};
  std::vector<std::string> text{};  // paragraphs
  std::vector<View> views{};
};

struct Page {
  std::string title;
  std::vector<std::string> summary{};  // lines below the title
  std::vector<Section> sections{};
  std::string controls{};  // JSON for assets/live.js, which asks the server for other sections; empty: none
};

// Sections as HTML. A figure holds the number of its chart in the list of charts_json() (chart_json.h).
[[nodiscard]] std::string sections_html(const std::vector<Section>& sections);

// What a page carries besides: its style, its script and Plotly.
struct PageAssets {
  std::string style;
  std::string script;
  std::string plotly;  // gzip
  std::string live{};  // script of pages with controls
};

// From <data_dir>/simulate/report/html/assets. Throws UsageError where Plotly was not installed there and
// says how it is.
[[nodiscard]] PageAssets read_page_assets(const std::filesystem::path& data_dir);

void write_page(std::ostream& out, const Page& page, const PageAssets& assets);

// &, <, > and quotes as HTML has them.
[[nodiscard]] std::string html_text(std::string_view text);

// RFC 4648, padded.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace tbdsim
