// Tables of kernels as CSV: nsys stats (cuda_gpu_kern_sum, cuda_gpu_sum, cuda_kern_exec_sum, cuda_gpu_trace),
// nvprof --csv (summary, --print-gpu-trace), ncu --csv. Lines that begin with "==" are what nvprof and ncu
// say beside the table.
#include <algorithm>
#include <fstream>
#include <istream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/suggest.h"
#include "simulate/import/kernel_sort.h"
#include "simulate/import/measured_run.h"
#include "simulate/import/recognise.h"
#include "simulate/import/text_lines.h"
#include "simulate/import/unpacked_file.h"

namespace tbdsim {
namespace {

constexpr std::size_t kLargestTable = std::size_t{1} << 30U;

// The number of commas that part the cells of a line.
std::ptrdiff_t commas_of(std::string_view line) {
  bool quoted = false;
  return std::ranges::count_if(line, [&](char c) {
    quoted ^= c == '"';
    return c == ',' && !quoted;
  });
}

// The text with lines before the table and beside it empty, so that lines keep their numbers. It ends at a
// second header, which begins a table of the host's calls, as nvprof before CUDA 9 writes it, and where 'nsys
// stats' says which report comes next.
std::string table_in(const std::filesystem::path& file) {
  UnpackedFile unpacked(file, kLargestTable + 1);
  std::istream in(&unpacked);
  std::string text, line, header;
  std::ptrdiff_t rules = 0;  // commas of a table of Nsight Compute whose rows end before its columns of rules
  while (std::getline(in, line)) {
    const std::string_view cells = trimmed(line);
    const bool beside = line.starts_with("==") || cells.empty();
    // The header is the first line whose columns tell a format.
    if (header.empty()) {
      if (!beside && recognise_text(line)) header = line;
      if (holds(header, "Rule Name")) rules = commas_of(header);
      text += header.empty() ? "\n" : line + "\n";
      continue;
    }
    if (line == header || line.starts_with("Processing [") || line.starts_with("Generating ")) break;
    if (rules > 0 && !beside)
      line.append(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, rules - commas_of(line))), ',');
    text += beside ? "\n" : line + "\n";
    if (text.size() > kLargestTable)
      fail_at(file.string(), 0, "a table of more than 1 GiB; expected a shorter run");
  }
  return text;
}

// Seconds of a unit as the tools print it; none for another.
std::optional<double> seconds_of(std::string_view unit) {
  for (const auto& [name, seconds] : {std::pair{"s", 1.0},
                                      {"ms", kMilli},
                                      {"us", kMicro},
                                      {"\u03bcs", kMicro},
                                      {"\u00b5s", kMicro},
                                      {"ns", kNano},
                                      {"second", 1.0},
                                      {"msecond", kMilli},
                                      {"usecond", kMicro},
                                      {"nsecond", kNano},
                                      {"nsec", kNano},
                                      {"usec", kMicro},
                                      {"msec", kMilli},
                                      {"sec", 1.0}}) {
    if (unit == name) return seconds;
  }
  return std::nullopt;
}

// The unit in brackets behind a column's name: "Duration (ns)".
std::optional<double> seconds_of_column(std::string_view column) {
  const std::size_t first = column.find('(');
  const std::size_t last = column.find(')', first == std::string_view::npos ? 0 : first);
  if (first == std::string_view::npos || last == std::string_view::npos) return std::nullopt;
  return seconds_of(trimmed(column.substr(first + 1, last - first - 1)));
}

// Whether three digits are behind each comma of a number, and no point before one.
bool has_thousands(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  const std::string_view whole = text.substr(0, text.find('.'));
  if (text.rfind(',') != whole.rfind(',')) return false;
  for (std::size_t comma = whole.find(','); comma != std::string_view::npos;) {
    const std::size_t next = whole.find(',', comma + 1);
    if (std::min(next, whole.size()) - comma - 1 != kDigits) return false;
    comma = next;
  }
  return true;
}

class Table {
 public:
  Table(const std::filesystem::path& file) : file_(file.string()), in_(table_in(file)), csv_(in_, file_) {}

  [[nodiscard]] const std::vector<std::string>& columns() const { return csv_.columns(); }
  // The column of that name or, if it ends in '*', of that beginning; SpecError where there is none.
  [[nodiscard]] std::size_t column(std::string_view name) const {
    if (const auto found = find(name)) return *found;
    return csv_.column(name);
  }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    if (!name.ends_with('*')) return csv_.find_column(name);
    for (std::size_t i = 0; i < columns().size(); ++i) {
      if (columns()[i].starts_with(name.substr(0, name.size() - 1))) return i;
    }
    return std::nullopt;
  }
  bool next() { return csv_.next(fields); }
  // A number, with or without commas between thousands; SpecError unless it is 0 or more.
  [[nodiscard]] double number(std::size_t at) const {
    std::string text(trimmed(fields[at]));
    if (!has_thousands(text))
      fail(
          fmt::format("{} of {} has a comma that parts no thousands; expected a point, as the tool prints it "
                      "with LC_ALL=C before its name",
                      in_quotes(fields[at]), columns()[at]));
    std::erase(text, ',');
    const auto value = parse_number(text);
    constexpr double kMost = 1e18;
    if (!value || *value < 0 || *value > kMost)
      fail(fmt::format("{} of {}; expected a number, 0 or more", in_quotes(fields[at]), columns()[at]));
    return *value;
  }
  [[noreturn]] void fail(const std::string& what) const { fail_at(file_, csv_.row_mark().line, what); }

  std::vector<std::string> fields;

 private:
  std::string file_;
  std::istringstream in_;
  CsvReader csv_;
};

// One row a kernel's name.
void read_sums(Table& table, const std::string& count, const std::string& time, KernelSums& sums) {
  const std::size_t name = table.column(table.find("Operation") ? "Operation" : "Name"),
                    counts = table.column(count), times = table.column(time);
  const auto type = table.find("Type"), category = table.find("Category");
  auto unit = seconds_of_column(table.columns()[times]);
  const bool units_row = !unit;
  if (units_row) {
    if (!table.next()) table.fail("no line of units; expected one below the names of columns");
    unit = seconds_of(trimmed(table.fields[times]));
    if (!unit) table.fail(in_quotes(table.fields[times]) + " is no unit of time; expected s, ms, us or ns");
  }
  while (table.next()) {
    if (type && table.fields[*type] != "GPU activities") continue;
    if (category && table.fields[*category] != "CUDA_KERNEL") continue;
    sums.add(table.fields[name], StepPart::unknown, table.number(counts),
             Seconds(*unit * table.number(times)));
  }
}

// One row a kernel and how it was launched, with the mean of its times (cuda_kern_exec_sum).
void read_means(Table& table, KernelSums& sums) {
  const std::size_t name = table.column("Kernel Name"), counts = table.column("Count"),
                    means = table.column("KAvg (*");
  const auto unit = seconds_of_column(table.columns()[means]);
  if (!unit) table.fail(in_quotes(table.columns()[means]) + " has no unit of time; expected s, ms, us or ns");
  while (table.next()) {
    const double count = table.number(counts);
    sums.add(table.fields[name], StepPart::unknown, count, Seconds(*unit * count * table.number(means)));
  }
}

// One row an execution. Sets the run's busy time and span.
void read_executions(Table& table, const std::string& start, const std::string& duration, MeasuredRun& run,
                     KernelSums& sums) {
  const std::size_t name = table.column("Name"), starts = table.column(start),
                    durations = table.column(duration);
  const auto device = table.find("Device");
  auto start_unit = seconds_of_column(table.columns()[starts]);
  auto unit = seconds_of_column(table.columns()[durations]);
  if (!unit || !start_unit) {
    if (!table.next()) table.fail("no line of units; expected one below the names of columns");
    start_unit = seconds_of(trimmed(table.fields[starts]));
    unit = seconds_of(trimmed(table.fields[durations]));
    if (!unit || !start_unit) table.fail("no units of Start and Duration; expected s, ms, us or ns");
  }
  std::map<std::string, std::pair<double, double>> totals;  // count and seconds of a name
  std::vector<std::pair<double, double>> spans;
  while (table.next()) {
    if (device && run.gpu.empty())
      run.gpu = table.fields[*device].substr(0, table.fields[*device].find(" ("));
    const double from = *start_unit * table.number(starts), seconds = *unit * table.number(durations);
    spans.emplace_back(from, from + seconds);
    auto& [count, time] = totals[table.fields[name]];
    ++count;
    time += seconds;
  }
  for (const auto& [kernel, total] : totals)
    sums.add(kernel, StepPart::unknown, total.first, Seconds(total.second));
  std::sort(spans.begin(), spans.end());
  double busy = 0, until = spans.empty() ? 0 : spans.front().first;
  for (const auto& [from, to] : spans) {
    busy += std::max(0.0, to - std::max(from, until));
    until = std::max(until, to);
  }
  run.busy = Seconds(busy);
  if (!spans.empty()) run.span = Seconds(until - spans.front().first);
}

// One row a kernel and metric, or a column a metric with a line of units ("--page raw").
void read_metrics(Table& table, KernelSums& sums) {
  const std::size_t name = table.column("Kernel Name");
  if (const auto metric = table.find("Metric Name")) {
    const std::size_t units = table.column("Metric Unit"), values = table.column("Metric Value");
    while (table.next()) {
      const std::string& what = table.fields[*metric];
      if (what != "gpu__time_duration.sum" && what != "Duration") continue;
      const auto unit = seconds_of(trimmed(table.fields[units]));
      if (!unit) table.fail(in_quotes(table.fields[units]) + " is no unit of time; expected ns, us, ms or s");
      sums.add(table.fields[name], StepPart::unknown, 1, Seconds(*unit * table.number(values)));
    }
    return;
  }
  const std::size_t times = table.column("gpu__time_duration*");
  if (!table.next()) table.fail("no line of units; expected one below the names of columns");
  const auto unit = seconds_of(trimmed(table.fields[times]));
  if (!unit) table.fail(in_quotes(table.fields[times]) + " is no unit of time; expected ns, us, ms or s");
  while (table.next())
    sums.add(table.fields[name], StepPart::unknown, 1, Seconds(*unit * table.number(times)));
}

}  // namespace

MeasuredRun read_kernel_table(const std::filesystem::path& file) {
  const FileFormat format = require_format(file);
  MeasuredRun run{.file = file.string(), .tool = std::string(info_of(format).title), .gpu = {}};
  run.notes.push_back("such a table marks no steps: the run counts as one; --steps says how many it has");
  Table table(file);
  KernelSums sums;
  switch (format) {
    case FileFormat::nsys_kernels:
      table.find("KAvg (*") ? read_means(table, sums) : read_sums(table, "Instances", "Total Time*", sums);
      break;
    case FileFormat::nvprof_summary:
      read_sums(table, "Calls", "Time", sums);
      break;
    case FileFormat::nsys_trace:
      read_executions(table, "Start*", "Duration*", run, sums);
      break;
    case FileFormat::nvprof_trace:
      read_executions(table, "Start", "Duration", run, sums);
      break;
    case FileFormat::ncu_csv:
      read_metrics(table, sums);
      break;
    default:
      fail_at(file.string(), 0, "no table of kernels; expected CSV of nsys, nvprof or ncu");
  }
  sums.put_into(run);
  return run;
}

}  // namespace tbdsim
