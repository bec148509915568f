// A page of charts and tables, and its text: one HTML file that loads nothing, for screens, phones and paper,
// dark or light.
//
//   Page -> sections -> views (one is shown, a list chooses) -> charts, tables
//
// Charts are written as the structs below in JSON (chart_json.h). The page's script, assets/page.js, draws
// them with Plotly (https://plotly.com/javascript, MIT licence) and alone decides how they look.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwspecs/base/table.h"

namespace tbdsim {

// How a series is drawn:
//   line    y over x, with the area between low and high
//   point   a mark at x, y; low and high are error bars of y
//   bar     a bar of length x for each category
//   span    a bar from `start` to start + x in the row of its category
//   box     the distribution of x in the row of its category
enum class ChartMark { line, point, bar, span, box };

// One colour of a chart. Vectors that its mark does not use are empty; the others are equally long.
struct Series {
  ChartMark mark = ChartMark::line;
  std::string name{};
  int colour = 0;  // index into the palette
  std::vector<double> x{};
  std::vector<double> y{};
  std::vector<std::string> categories{};
  std::vector<double> low{}, high{};
  std::vector<double> start{};
  std::vector<double> size{};        // relative area of points
  std::vector<std::string> hover{};  // shown above the numbers of a mark that is pointed at
  bool dashed = false;
};

struct Axis {
  std::string title{};  // with the unit: "throughput, images/s"
  bool logarithmic = false;
  std::optional<double> from{}, to{};  // range; none: that of the data
};

struct Chart {
  std::string title{};
  Axis x{}, y{};
  std::vector<Series> series{};
  bool wide = false;     // as wide as the page
  bool stacked = false;  // the bars of a category lie end to end
  bool square = false;   // units of x and y are equally long
};

struct View {
  std::string name{};  // in the list; empty for the only view of a section
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
  std::string controls{};  // JSON for PageAssets::live, which requests sections from the server; empty: none
};

// Sections as HTML. A figure holds the number of its chart in the list of charts_json() (chart_json.h).
[[nodiscard]] std::string sections_html(const std::vector<Section>& sections);

// Style and scripts that every page includes.
struct PageAssets {
  std::string style;
  std::string script;
  std::string plotly;     // compressed with gzip
  std::string live{};     // script of pages with controls
  std::string layouts{};  // the same of the page of layouts
};

// Reads <data_dir>/simulate/report/html/assets. Throws UsageError, with the command that installs it, if
// Plotly is missing there.
[[nodiscard]] PageAssets read_page_assets(const std::filesystem::path& data_dir);

void write_page(std::ostream& out, const Page& page, const PageAssets& assets);

// The text with &, <, > and quotes escaped for HTML.
[[nodiscard]] std::string html_text(std::string_view text);

// The bytes in base64 (RFC 4648), padded.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace tbdsim
