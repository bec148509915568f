#include "simulate/sweep/rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "hwspecs/base/csv.h"
#include "hwspecs/base/error.h"
#include "hwspecs/base/number.h"
#include "hwspecs/base/quantity_text.h"
#include "hwspecs/base/spec_change.h"
#include "hwspecs/base/suggest.h"
#include "hwspecs/base/table.h"

namespace tbdsim {
namespace {

std::string csv_start(const SweepPoint& point) {
  std::string line;
  for (const std::string& value : point.values) {
    append_csv_field(line, value);
    line += ',';
  }
  return line;
}

std::string csv_line(const Sweep& sweep, const SweepPoint& point) {
  std::string line = csv_start(point);
  for (std::size_t m = 0; m < sweep.metrics.size(); ++m) {
    if (point.metrics[m]) fmt::format_to(std::back_inserter(line), "{:.6g}", *point.metrics[m]);
    line += ',';
  }
  append_csv_field(line, point.status);
  return line + '\n';
}

std::string json_start(const Sweep& sweep, const SweepPoint& point) {
  std::string line = "{";
  for (std::size_t a = 0; a < point.values.size(); ++a) {
    const std::string& value = point.values[a];
    line += json_text(sweep.axes[a].key()) + ": " + (parse_number(value) ? value : json_text(value)) + ", ";
  }
  return line;
}

std::string json_line(const Sweep& sweep, const SweepPoint& point) {
  std::string line = json_start(sweep, point);
  for (std::size_t m = 0; m < sweep.metrics.size(); ++m) {
    const std::optional<double>& value = point.metrics[m];
    line +=
        json_text(sweep.metrics[m]->name) + ": " + (value ? fmt::format("{:.6g}", *value) : "null") + ", ";
  }
  return line + "\"status\": " + json_text(point.status) + "}\n";
}

template <class Q>
std::optional<double> si_of(const std::string& text) {
  try {
    return parse_quantity<Q>(with_space(text)).si();
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

// "90 %" or "90%" as 0.9.
std::optional<double> ratio_of(const std::string& text) {
  if (!text.ends_with('%')) return std::nullopt;
  const std::size_t end = text.find_last_not_of(" %");
  const auto percent = parse_number(text.substr(0, end + 1));
  return percent ? std::optional(*percent / kPercent) : std::nullopt;
}

// A ratio as 0.9 or 90 %. A plain 90 is refused: it cannot be meant as a ratio.
double ratio_bound(const Metric& metric, const std::string& text) {
  std::optional<double> value = ratio_of(text);
  if (!value) value = parse_number(text);
  if (value && (*value <= 1 || text.ends_with('%'))) return *value;
  throw UsageError(
      fmt::format("{}: {} is no ratio; expected as 0.9 or '90 %'", metric.name, in_quotes(text)));
}

// A number in SI units, or with a unit of the metric's kind.
double number_of(const Metric& metric, const std::string& text) {
  if (metric.unit == kRatio) return ratio_bound(metric, text);
  std::optional<double> value = parse_number(text);
  if (!value && metric.unit == "s") value = si_of<Seconds>(text);
  if (!value && metric.unit == "B") value = si_of<Bytes>(text);
  if (!value && metric.unit == "B/s") value = si_of<BytesPerSecond>(text);
  if (!value && metric.unit == "flop/s") value = si_of<FlopsPerSecond>(text);
  if (!value && metric.unit == "USD") value = si_of<Dollars>(text);
  if (!value && metric.unit == "USD/s") value = si_of<DollarsPerSecond>(text);
  if (value) return *value;
  throw UsageError(fmt::format("{}: {} is no number in {}", metric.name, in_quotes(text), metric.unit));
}

bool within(const MetricBound& bound, const std::optional<double>& value) {
  if (!value) return false;
  return bound.at_least ? *value >= bound.value : *value <= bound.value;
}

// No worse in anything. Of equals the earlier point beats the later one.
bool beats(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] < b[i]) return false;
  }
  return true;
}

}  // namespace

std::string header_line(const Sweep& sweep, RowFormat format) {
  if (format == RowFormat::json_lines) return "";
  std::string line;
  for (const SweepAxis& axis : sweep.axes) {
    append_csv_field(line, axis.key());
    line += ',';
  }
  for (const Metric* metric : sweep.metrics) line += std::string(metric->name) + ',';
  return line + "status\n";
}

std::string row_line(const Sweep& sweep, const SweepPoint& point, RowFormat format) {
  return format == RowFormat::csv ? csv_line(sweep, point) : json_line(sweep, point);
}

bool is_row_of(const Sweep& sweep, std::int64_t point, RowFormat format, std::string_view line) {
  const SweepPoint axes{.values = values_at(sweep, point), .metrics = {}, .status = {}};
  const std::string start = format == RowFormat::csv ? csv_start(axes) : json_start(sweep, axes);
  return line.starts_with(start) && line.size() > start.size() + sweep.metrics.size();
}

MetricBound parse_bound(const std::string& text) {
  const std::size_t sign = text.find_first_of("<>");
  const bool whole = sign != std::string::npos && sign > 0 && text.compare(sign + 1, 1, "=") == 0;
  if (!whole) {
    throw UsageError(in_quotes(text) +
                     " is no bound; expected as throughput>=1000, 'epoch_time<=2 h' or 'rent<=10 USD/h'");
  }
  const Metric& metric = find_metric(text.substr(0, sign));
  return {&metric, text[sign] == '>', number_of(metric, text.substr(sign + 2))};
}

const Metric& find_metric(const std::string& name) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return metric;
    names.emplace_back(metric.name);
  }
  throw UsageError("unknown metric " + in_quotes(name) + did_you_mean(name, names) +
                   " ('tbd-sim list metrics' names them)");
}

bool more_is_better(const Metric& metric) {
  return metric.unit != "s" && metric.unit != "B" && !metric.unit.starts_with("USD") &&
         metric.unit != "kernels";
}

std::vector<const Metric*> judged_by(const Choosing& choosing) {
  std::vector<const Metric*> metrics = choosing.by;
  for (const MetricBound& bound : choosing.bounds) metrics.push_back(bound.metric);
  return metrics;
}

SweepRow row_of(const Sweep& sweep, const SweepPoint& point, const Choosing& choosing, RowFormat format) {
  SweepRow row{.line = {}, .group = {}, .values = {}};
  if (choosing.chooses() && !point.ok()) return row;
  const std::optional<double>* judged = point.metrics.data() + sweep.metrics.size();
  for (const Metric* metric : choosing.by) {
    if (!*judged) return row;
    row.values.push_back(more_is_better(*metric) ? **judged : -**judged);
    ++judged;
  }
  for (const MetricBound& bound : choosing.bounds) {
    if (!within(bound, *judged++)) return row;
  }
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    const auto& per = choosing.per;
    if (std::find(per.begin(), per.end(), sweep.axes[a].key()) != per.end())
      row.group += point.values[a] + '\n';
  }
  row.line = row_line(sweep, point, format);
  return row;
}

void ChosenRows::add(SweepRow row, std::int64_t point) {
  if (row.line.empty()) return;
  std::vector<Kept>& kept = groups_[row.group];
  if (!row.values.empty()) {
    for (const Kept& other : kept) {
      if (beats(other.row.values, row.values)) return;
    }
    std::erase_if(kept, [&](const Kept& other) { return beats(row.values, other.row.values); });
  }
  kept.push_back({point, std::move(row)});
}

std::vector<std::string> ChosenRows::lines() const {
  std::vector<const Kept*> all;
  for (const auto& [group, kept] : groups_) {
    for (const Kept& one : kept) all.push_back(&one);
  }
  std::sort(all.begin(), all.end(), [](const Kept* a, const Kept* b) { return a->point < b->point; });
  std::vector<std::string> lines;
  for (const Kept* one : all) lines.push_back(one->row.line);
  return lines;
}

}  // namespace tbdsim
