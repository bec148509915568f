// The table of metrics of a job's step, for sweeps over layouts.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "simulate/job/job_prediction.h"
#include "simulate/prediction/metrics.h"

namespace tbdsim {

struct LayoutMetric {
  Metric metric;  // without a value of its own
  std::optional<double> (*value)(const JobPrediction&);
};

[[nodiscard]] std::span<const LayoutMetric> layout_metrics();
// Throws UsageError with "did you mean".
[[nodiscard]] const LayoutMetric& find_layout_metric(const std::string& name);

}  // namespace tbdsim
