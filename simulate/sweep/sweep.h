// A sweep: every combination of the axes' values is a point. Points have numbers from 0; the last axis varies
// fastest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/prediction/metrics.h"
#include "simulate/sweep/axis.h"

namespace tbdsim {

inline constexpr std::int64_t kMostPoints = 1'000'000'000;

struct Sweep {
  std::vector<SweepAxis> axes;
  std::vector<const Metric*> metrics{};  // columns beside the axes
  std::vector<const Metric*> judged{};   // by which points are chosen; no columns
  bool of_layouts = false;               // points are jobs on clusters (layout_sweep.h)
};

struct SweepPoint {
  std::vector<std::string> values;  // of the axes
  // Values of Sweep::metrics, then of Sweep::judged; none where the point has an error, or the metric no
  // value.
  std::vector<std::optional<double>> metrics;
  std::string status;  // "ok", "out of memory" (its times are hypothetical) or an error

  [[nodiscard]] bool ok() const { return status == "ok"; }
};

// The number of points.
[[nodiscard]] std::int64_t points_of(const Sweep& sweep);

// The axes' values at point number `point`.
[[nodiscard]] std::vector<std::string> values_at(const Sweep& sweep, std::int64_t point);

}  // namespace tbdsim
