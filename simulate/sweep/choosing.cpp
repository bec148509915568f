#include "simulate/sweep/choosing.h"

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

// The SI value of a number, with or without a unit of the metric's quantity.
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

// True if `a` is no worse than `b` in any value.
bool beats(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] < b[i]) return false;
  }
  return true;
}

template <class... Q>
std::optional<double> first_of(const std::string& text) {
  std::optional<double> value;
  ((value = value ? value : si_of<Q>(text)), ...);
  return value;
}

// True where the axis is one of `names`.
bool is_among(const std::vector<std::string>& names, const SweepAxis& axis) {
  return std::find(names.begin(), names.end(), axis.key()) != names.end();
}

}  // namespace

bool is_relative(const std::string& value) { return value.ends_with('%') || value.starts_with('x'); }

std::optional<double> number_of_axis(const std::string& value) {
  if (value.ends_with('%')) {
    const auto more = ratio_of(value.starts_with('+') ? value.substr(1) : value);
    return more ? std::optional(1 + *more) : std::nullopt;
  }
  if (const auto number = parse_number(value.starts_with('x') ? value.substr(1) : value)) return number;
  return first_of<BytesPerSecond, Bytes, Seconds, Hertz, FlopsPerSecond, Watts, Dollars, DollarsPerSecond>(
      value);
}

MetricBound parse_bound(const std::string& text, FindMetric find) {
  const std::size_t sign = text.find_first_of("<>");
  const bool whole = sign != std::string::npos && sign > 0 && text.compare(sign + 1, 1, "=") == 0;
  if (!whole) {
    throw UsageError(in_quotes(text) +
                     " is no bound; expected as throughput>=1000, 'epoch_time<=2 h' or 'rent<=10 USD/h'");
  }
  const Metric& metric = find(text.substr(0, sign));
  return {&metric, text[sign] == '>', number_of(metric, text.substr(sign + 2))};
}

std::vector<const Metric*> judged_by(const Choosing& choosing) {
  std::vector<const Metric*> metrics = choosing.by;
  for (const MetricBound& bound : choosing.bounds) metrics.push_back(bound.metric);
  return metrics;
}

SweepRow row_of(const Sweep& sweep, const SweepPoint& point, const Choosing& choosing, RowFormat format) {
  SweepRow row{.line = {}, .why_not = {}, .group = {}, .values = {}};
  const auto left_out = [&](const std::string& why) {
    row.why_not = why;
    return row;
  };
  if (choosing.chooses() && !point.ok()) return left_out(point.status);
  const std::optional<double>* judged = point.metrics.data() + sweep.metrics.size();
  for (const Metric* metric : choosing.by) {
    if (!*judged) return left_out(std::string(kNoValue) + std::string(metric->name));
    row.values.push_back(more_is_better(*metric) ? **judged : -**judged);
    ++judged;
  }
  for (const MetricBound& bound : choosing.bounds) {
    if (!within(bound, *judged++))
      return left_out("not within the bound of " + std::string(bound.metric->name));
  }
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    if (is_among(choosing.per, sweep.axes[a])) row.group += point.values[a] + '\n';
    if (is_among(choosing.axes, sweep.axes[a]))
      row.values.push_back(-number_of_axis(point.values[a]).value());
  }
  row.line = row_line(sweep, point, format);
  return row;
}

void ChosenRows::add(SweepRow row, std::int64_t point) {
  if (row.line.empty()) {
    ++left_out_[row.why_not];
    return;
  }
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

std::string ChosenRows::why_not(std::string_view begin) const {
  std::vector<std::string> reasons;
  for (const auto& [reason, points] : left_out_) {
    if (reason.starts_with(begin)) reasons.push_back(fmt::format("{} (points: {})", reason, points));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace tbdsim
