// Rows of a sweep as text, and which of them are kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/sweep/point_predictor.h"

namespace tbdsim {

enum class RowFormat { csv, json_lines };

// A point as a line with its end: the axes, the metrics (six digits; empty or null where there is none),
// status.
[[nodiscard]] std::string header_line(const Sweep& sweep, RowFormat format);  // none of JSON lines
[[nodiscard]] std::string row_line(const Sweep& sweep, const SweepPoint& point, RowFormat format);

// True where `line` (with its end) starts with the axes' values of point number `point` and has as many
// fields as a row.
[[nodiscard]] bool is_row_of(const Sweep& sweep, std::int64_t point, RowFormat format, std::string_view line);

// A line and what decides whether it is kept.
struct SweepRow {
  std::string line;
  std::string group;           // values of the axes of `per`
  std::vector<double> values;  // of the metrics asked for, the better the higher; none: never kept
};

// "throughput>=1000": a bound of a metric.
struct MetricBound {
  const Metric* metric = nullptr;
  bool at_least = true;
  double value = 0;
};
// "epoch_time<=2 h" too; a number without a unit is in SI units. Throws UsageError.
[[nodiscard]] MetricBound parse_bound(const std::string& text);

// UsageError with "did you mean".
[[nodiscard]] const Metric& find_metric(const std::string& name);

// More is better, but of seconds, bytes and dollars.
[[nodiscard]] bool more_is_better(const Metric& metric);

// Points that fit and keep the bounds; of these all, the best of each group, or those that no other beats in
// every metric (the Pareto front of each group).
struct Choosing {
  std::vector<const Metric*> by;  // one: the best; several: the Pareto front; none: all
  std::vector<std::string> per;   // axes: a choice for each combination of their values
  std::vector<MetricBound> bounds;

  [[nodiscard]] bool chooses() const { return !by.empty() || !bounds.empty(); }
};

// The metrics it needs: `by`, then those of the bounds.
[[nodiscard]] std::vector<const Metric*> judged_by(const Choosing& choosing);

// Empty where the point is out of the running. `sweep.judged` must be judged_by(choosing).
[[nodiscard]] SweepRow row_of(const Sweep& sweep, const SweepPoint& point, const Choosing& choosing,
                              RowFormat format);

// Rows that are not beaten so far; memory grows with those alone.
class ChosenRows {
 public:
  void add(SweepRow row, std::int64_t point);
  [[nodiscard]] std::vector<std::string> lines() const;  // in the order of their points

 private:
  struct Kept {
    std::int64_t point;
    SweepRow row;
  };
  std::map<std::string, std::vector<Kept>> groups_;
};

}  // namespace tbdsim
