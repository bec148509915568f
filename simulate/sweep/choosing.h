// The choice among the points of a sweep: those within bounds, the best, or a Pareto front.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/sweep/row_text.h"

namespace tbdsim {

// A point as a line, with the values that decide whether it is chosen.
struct SweepRow {
  std::string line;            // empty: the point is not to be chosen
  std::string why_not;         // in that case: "out of memory"
  std::string group;           // values of the axes of Choosing::per
  std::vector<double> values;  // of Choosing::by and Choosing::axes, negated where less is better
};

// A bound of a metric: "throughput>=1000".
struct MetricBound {
  const Metric* metric = nullptr;
  bool at_least = true;
  double value = 0;
};
// The metric of that name; throws UsageError.
using FindMetric = const Metric& (*)(const std::string& name);

// From "throughput>=1000" or "epoch_time<=2 h"; a number without a unit is in SI units. Throws UsageError.
[[nodiscard]] MetricBound parse_bound(const std::string& text, FindMetric find = find_metric);

// True for a change of what a file has, "+10%" or "x2".
[[nodiscard]] bool is_relative(const std::string& value);
// The number that a value of an axis is, in SI units or times what a file has: of "132", "5 TB/s", "+10%"
// (1.1), "x2"; none of a name.
[[nodiscard]] std::optional<double> number_of_axis(const std::string& value);

// How points are chosen from those that fit into memory and are within the bounds: all, the best of each
// group, or the Pareto front of each group (the points that no other beats in every metric).
struct Choosing {
  std::vector<const Metric*> by;  // one: the best; several: the Pareto front; none: all
  std::vector<std::string> axes;  // of numbers, of which the Pareto front wants less: what hardware has
  std::vector<std::string> per;   // axes: a choice for each combination of their values
  std::vector<MetricBound> bounds;

  [[nodiscard]] bool chooses() const { return !by.empty() || !bounds.empty(); }
};

// The metrics that decide: those of `by`, then those of the bounds.
[[nodiscard]] std::vector<const Metric*> judged_by(const Choosing& choosing);

// The row of a point. Precondition: sweep.judged is judged_by(choosing).
[[nodiscard]] SweepRow row_of(const Sweep& sweep, const SweepPoint& point, const Choosing& choosing,
                              RowFormat format);

inline constexpr std::string_view kNoValue = "no value of ";  // a reason, before the metric's name

// The rows that no other has beaten so far. The earlier of two points with equal values is kept.
class ChosenRows {
 public:
  void add(SweepRow row, std::int64_t point);
  [[nodiscard]] std::vector<std::string> lines() const;  // in the order of their points
  // "out of memory (points: 4); no value of rent (points: 2)": why points were not to be chosen, of all
  // reasons that begin so.
  [[nodiscard]] std::string why_not(std::string_view begin = "") const;

 private:
  struct Kept {
    std::int64_t point;
    SweepRow row;
  };
  std::map<std::string, std::vector<Kept>> groups_;
  std::map<std::string, std::int64_t> left_out_;  // reason -> points
};

}  // namespace tbdsim
