#include "simulate/import/summary_table.h"

#include <algorithm>
#include <optional>

#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/text_lines.h"

namespace tbdsim {
namespace {

constexpr std::size_t kMostRows = 100'000;
constexpr std::int64_t kMostParameters = 1'000'000'000'000;
constexpr std::int64_t kLargestSide = 10'000'000;
constexpr std::size_t kMostSides = 8;
constexpr int kDeepestModule = 1'000;

// The line with one ASCII character for each of Unicode, so that columns line up: '|' for upright lines, '~'
// for the three dots of a cut name, '-' for all others.
std::string plain(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size();) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const std::size_t length = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    const std::string_view character = line.substr(i, length);
    if (byte < 0x80) {
      text += line[i];
    } else {
      text += character == "\u2502" || character == "\u2503" ? '|' : character == "\u2026" ? '~' : '-';
    }
    i += length;
  }
  return text;
}

struct Column {
  std::string_view title;
  std::size_t begin, end;
};

// The cell of a line below a column's title.
std::string cell(const std::string& line, const Column& column) {
  if (column.begin >= line.size()) return "";
  return std::string(trimmed(std::string_view(line).substr(column.begin, column.end - column.begin)));
}

// The columns of a header; each ends where the next begins.
template <std::size_t Count>
std::vector<Column> columns_of(const std::string& header, const std::string_view (&titles)[Count]) {
  std::vector<Column> columns;
  for (const std::string_view title : titles) {
    const std::size_t begin = header.find(title);
    if (begin != std::string::npos) columns.push_back({title, begin, std::string::npos});
  }
  std::ranges::sort(columns, {}, &Column::begin);
  for (std::size_t i = 0; i + 1 < columns.size(); ++i) columns[i].end = columns[i + 1].begin;
  if (!columns.empty()) columns[0].begin = 0;
  return columns;
}

// The whole numbers of a text in brackets, "(None, 26, 26, 32)"; without the first, the batch. None where one
// is not a number.
std::vector<std::int64_t> sides_of(std::string_view text) {
  std::vector<std::int64_t> sides;
  std::string number;
  int count = 0;
  const auto finish = [&] {
    const std::string_view whole = trimmed(number);
    if (whole.empty()) return true;
    if (count++ == 0) return true;  // the batch, None or a number
    const auto side = parse_whole_number(std::string(whole));
    if (!side || *side < 1 || *side > kLargestSide || sides.size() == kMostSides) return false;
    sides.push_back(*side);
    return true;
  };
  for (const char c : text) {
    if (c == '(' || c == ')' || c == '[' || c == ']') continue;
    if (c != ',') {
      number += c;
      continue;
    }
    if (!finish()) return {};
    number.clear();
  }
  return finish() ? sides : std::vector<std::int64_t>{};
}

// "2,359,808" -> 2359808; "--" and "-" -> 0.
std::optional<std::int64_t> count_of(std::string text) {
  std::erase(text, ',');
  if (text == "--" || text == "-") return 0;
  const auto number = parse_whole_number(text);
  return number && *number >= 0 && *number <= kMostParameters ? number : std::nullopt;
}

// "conv1 (Conv2D)" -> name and type. A cut type has no bracket behind it.
void set_name_and_type(const std::string& text, SummaryRow& row) {
  const std::size_t open = text.rfind('(');
  row.name = std::string(trimmed(text.substr(0, open)));
  if (open == std::string::npos) return;
  const std::size_t close = text.find(')', open);
  row.type = text.substr(open + 1, close == std::string::npos ? close : close - open - 1);
}

// "['add[0][0]', 'bn[0][0]']" or "add[0][0], bn[0]~" -> names without calls.
std::vector<std::string> connections_of(const std::string& text) {
  std::vector<std::string> names;
  std::string name;
  const auto finish = [&] {
    const bool cut = name.ends_with('~');
    const std::size_t call = name.find('[', name.starts_with('[') ? 1 : 0);
    std::string plain_name = name.substr(0, call);
    std::erase_if(plain_name, [](char c) { return c == '\'' || c == '[' || c == ']'; });
    if (cut && call == std::string::npos && !plain_name.ends_with('~')) plain_name += '~';
    if (!plain_name.empty() && plain_name != "-") names.push_back(plain_name);
    name.clear();
  };
  for (const char c : text) {
    if (c == ',' || c == ' ') {
      finish();
    } else {
      name += c;
    }
  }
  finish();
  return names;
}

class KerasReader {
 public:
  KerasReader(const std::string& text, const std::string& file) : file_(file) {
    for (const std::string& line : lines_of(text)) lines_.push_back(plain(line));
  }

  SummaryTable run() {
    std::size_t i = 0;
    for (; i < lines_.size() && !is_keras_header(lines_[i]); ++i) {
      const std::size_t quote = lines_[i].find('"');
      if (lines_[i].starts_with("Model:") && quote != std::string::npos)
        table_.title = lines_[i].substr(quote + 1, lines_[i].rfind('"') - quote - 1);
    }
    if (i == lines_.size()) fail_at(file_, 0, "no header 'Layer (type)'; expected a summary of Keras");
    boxed_ = lines_[i].find('|') != std::string::npos;
    constexpr std::string_view kTitles[] = {"Layer (type)", "Output Shape", "Param #", "Connected to"};
    columns_ = columns_of(lines_[i], kTitles);
    table_.has_connections = columns_.size() == 4;
    for (++i; i < lines_.size(); ++i) {
      const std::string_view line = trimmed(lines_[i]);
      if (line.starts_with("Total params")) break;
      if (is_rule(line)) continue;
      const int depth = boxed_ ? depth_of(lines_[i]) : take_frames(lines_[i]);
      read(lines_[i], depth, static_cast<int>(i) + 1);
    }
    finish_row();
    return std::move(table_);
  }

 private:
  static bool is_rule(std::string_view line) {
    return std::ranges::all_of(
        line, [](char c) { return c == '_' || c == '=' || c == '-' || c == '|' || c == ' '; });
  }

  // Models around a layer, as Keras 3 shows those of models in models: "|    - conv2d (Conv2D)", three blanks
  // each.
  [[nodiscard]] static int depth_of(const std::string& line) {
    constexpr std::size_t kBlanks = 3, kMost = 1'000;
    const std::size_t begin = line.find_first_not_of("| ");
    const bool inside = begin != std::string::npos && line.substr(begin).starts_with("- ");
    return inside ? static_cast<int>(std::clamp<std::size_t>((begin - 1) / kBlanks, 1, kMost)) : 0;
  }

  // The same as Keras 2 shows them, in frames: "|| conv2d (Conv2D)   ...  ||", which become blanks.
  [[nodiscard]] static int take_frames(std::string& line) {
    constexpr std::size_t kMost = 1'000;
    const std::size_t frames = std::min({line.find_first_not_of('|'), line.size(), kMost});
    const std::size_t end = line.find_last_not_of("| ");
    std::fill_n(line.begin(), frames, ' ');
    if (frames > 0 && end != std::string::npos) line.resize(end + 1);
    return static_cast<int>(frames);
  }

  [[nodiscard]] std::vector<std::string> cells_of(const std::string& line) const {
    std::vector<std::string> cells;
    if (!boxed_) {
      for (const Column& column : columns_) cells.push_back(cell(line, column));
      return cells;
    }
    std::size_t begin = line.find('|');
    while (begin != std::string::npos && begin + 1 < line.size()) {
      const std::size_t end = std::min(line.find('|', begin + 1), line.size());  // narrow terminals cut lines
      cells.emplace_back(trimmed(std::string_view(line).substr(begin + 1, end - begin - 1)));
      begin = end;
    }
    cells.resize(columns_.size());
    return cells;
  }

  // A row begins where there is a number of parameters; lines below it continue its cells.
  void read(const std::string& line, int depth, int number) {
    constexpr std::size_t kParameters = 2;
    const std::vector<std::string> cells = cells_of(line);
    if (!cells[kParameters].empty()) {
      finish_row();
      const auto count = count_of(cells[kParameters]);
      if (!count)
        fail_at(file_, number,
                in_quotes(cells[kParameters]) + " is no number of parameters; expected one as 9,472");
      if (table_.rows.size() == kMostRows)
        fail_at(file_, number, "more than 100000 layers; expected a smaller network");
      row_ = {.line = number, .name = {}, .type = {}, .parameters = *count, .depth = depth};
      cells_ = cells;
      open_ = true;
      return;
    }
    if (!open_) fail_at(file_, number, "a row without a number of parameters; expected one as '9,472'");
    for (std::size_t i = 0; i < cells.size(); ++i) {
      // Boxes cut between words; Keras 2 cuts anywhere, in names too.
      if (!cells[i].empty()) cells_[i] += (boxed_ && !cells_[i].empty() ? " " : "") + cells[i];
    }
  }

  void finish_row() {
    if (!open_) return;
    open_ = false;
    set_name_and_type(cells_[0], row_);
    std::erase(row_.type, ' ');  // of a name that lines cut
    if (row_.depth > 0) row_.name.erase(0, row_.name.find_first_not_of("- "));
    row_.output = sides_of(cells_[1]);
    if (row_.type.empty())
      fail_at(file_, row_.line,
              in_quotes(cells_[0]) +
                  (holds(cells_[0], "[-1,")
                       ? " is of torchsummary, which does not say kernels; expected torchinfo.summary "
                         "with input_size and kernel_size among col_names"
                       : " names no type; expected 'name (Type)'"));
    if (table_.has_connections) row_.from = connections_of(cells_[3]);
    table_.rows.push_back(std::move(row_));
  }

  const std::string& file_;
  std::vector<std::string> lines_;
  std::vector<Column> columns_;
  bool boxed_ = false;
  bool open_ = false;  // `row_` and `cells_` hold a row
  SummaryRow row_{};
  std::vector<std::string> cells_;
  SummaryTable table_{};
};

// The parts of a line between blanks, lists in brackets as one: "[1, 3, 4]  --  23,296".
std::vector<std::string> parts_of(std::string_view line) {
  std::vector<std::string> parts;
  int open = 0;
  bool within = false;
  for (const char c : line) {
    if (c == ' ' && open <= 0) {
      within = false;
      continue;
    }
    if (!within) parts.emplace_back();
    within = true;
    open += c == '[' ? 1 : c == ']' ? -1 : 0;
    parts.back() += c;
  }
  return parts;
}

// The cells of a row of torchinfo, in the order of its columns. A cell that is wider than its column
// (col_width=10) moves those behind it, so that parts are counted where there are as many as columns.
std::vector<std::string> torchinfo_cells(const std::string& line, const std::vector<Column>& columns) {
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.push_back(cell(line, column));
  if (columns.size() < 2 || columns[1].begin >= line.size()) return cells;
  const std::vector<std::string> parts = parts_of(std::string_view(line).substr(columns[1].begin));
  if (parts.size() + 1 == columns.size()) std::ranges::copy(parts, cells.begin() + 1);
  return cells;
}

// Sets type, name and depth from "|    --Conv2d (conv1): 2-1", "|    --Conv2d (conv1)", "|    + Conv2d: 2-1".
void set_module(const std::string& text, const std::string& file, SummaryRow& row) {
  const std::size_t begin = std::min(text.find_first_not_of("|-+ "), text.size());
  const std::size_t colon = std::min(text.rfind(": "), text.size());
  const std::string module = text.substr(begin, colon < begin ? 0 : colon - begin);
  const std::size_t open = module.find(" (");
  row.type = module.substr(0, open);
  if (open != std::string::npos && module.ends_with(')'))
    row.name = module.substr(open + 2, module.size() - open - 3);
  if (colon < text.size()) {
    const double depth = leading_number(text.substr(colon + 2)).value_or(0);
    if (depth < 0 || depth > kDeepestModule)
      fail_at(file, row.line, in_quotes(text) + "; expected a depth of 0 to 1000 after the colon");
    row.depth = static_cast<int>(depth);
  }
  if (colon < text.size()) return;
  row.type = text.substr(begin, text.find_first_of(" (", begin) - begin);
  constexpr std::size_t kFirst = 2, kEach = 5;  // characters before a module of the first level, of each more
  row.depth = static_cast<int>(std::min<std::size_t>((begin + kEach - kFirst) / kEach, kDeepestModule));
}

}  // namespace

bool is_keras_header(std::string_view line) {
  return holds(line, "Layer (type)") && holds(line, "Output Shape") && holds(line, "Param #");
}

bool is_torchinfo_header(std::string_view line) {
  return holds(line, "Layer (type") && (holds(line, "depth-idx)") || holds(line, "(var_name))"));
}

SummaryTable read_keras_summary(const std::string& text, const std::string& file) {
  return KerasReader(text, file).run();
}

SummaryTable read_torchinfo_summary(const std::string& text, const std::string& file) {
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(text)) lines.push_back(plain(line));
  std::size_t i = 0;
  while (i < lines.size() && !is_torchinfo_header(lines[i])) ++i;
  if (i == lines.size())
    fail_at(file, 0, "no header 'Layer (type:depth-idx)'; expected a summary of torchinfo");
  constexpr std::string_view kTitles[] = {"Layer (type",  "Input Shape", "Output Shape", "Param #",
                                          "Kernel Shape", "Param %",     "Mult-Adds",    "Trainable"};
  const std::vector<Column> columns = columns_of(lines[i], kTitles);
  const auto column = [&](std::string_view title) {
    const auto found = std::ranges::find(columns, title, &Column::title);
    return found == columns.end() ? nullptr : &*found;
  };
  const Column *input = column("Input Shape"), *output = column("Output Shape"),
               *parameters = column("Param #"), *kernel = column("Kernel Shape");
  if (output == nullptr || parameters == nullptr)
    fail_at(file, static_cast<int>(i) + 1,
            "no columns 'Output Shape' and 'Param #'; expected torchinfo's usual ones");
  SummaryTable table{.title = {}, .has_inputs = input != nullptr, .has_kernels = kernel != nullptr};
  for (++i; i < lines.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    if (lines[i].starts_with("=")) {
      if (!table.rows.empty()) break;
      continue;
    }
    if (trimmed(lines[i]).empty()) continue;
    if (table.rows.size() == kMostRows)
      fail_at(file, number, "more than 100000 modules; expected a smaller network");
    SummaryRow row{.line = number, .name = {}, .type = {}};
    const std::vector<std::string> cells = torchinfo_cells(lines[i], columns);
    const auto below = [&](const Column* title) {
      return cells[static_cast<std::size_t>(title - columns.data())];
    };
    set_module(cells[0], file, row);
    if (row.type.empty()) fail_at(file, number, "names no module; expected 'Type: depth-index'");
    row.output = sides_of(below(output));
    if (input != nullptr) row.input = sides_of(below(input));
    const std::string count = below(parameters);
    const auto known = count_of(count);
    if (!known)
      fail_at(
          file, number,
          in_quotes(count) +
              " is no number of parameters; expected one as 9,472 (a module that is used twice has none)");
    row.parameters = *known;
    if (kernel != nullptr) {
      const std::string text_of_kernel = below(kernel);
      row.kernel = sides_of("[0, " + (text_of_kernel == "--" ? std::string() : text_of_kernel) + "]");
    }
    if (table.title.empty()) table.title = row.type;
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) fail_at(file, 0, "holds no module; expected a summary of torchinfo");
  return table;
}

}  // namespace tbdsim
