// The table of metrics: name, unit, description, function. Every output loops over it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

inline constexpr std::string_view kRatio = "1";  // the unit of ratios from 0 to 1

// target: of a run to a target quality; no value without one.
enum class MetricGroup { time, memory, target };

struct Metric {
  std::string_view name;
  MetricGroup group;
  std::string_view unit;  // "samples/s": of the model's own unit, e.g. images/s
  std::string_view description;
  std::optional<double> (*value)(const Prediction&);  // none where an input is missing
};

[[nodiscard]] std::span<const Metric> metrics();
// Throws UsageError with "did you mean".
[[nodiscard]] const Metric& find_metric(const std::string& name);
// False for times, memory, prices, energy and counts of kernels and epochs.
[[nodiscard]] bool more_is_better(const Metric& metric);
// The unit with the model's own for samples.
[[nodiscard]] std::string unit_of(const Metric& metric, const Prediction& prediction);

// "images/s": the unit of a model's throughput.
[[nodiscard]] std::string throughput_unit(const ModelFile& model);

}  // namespace tbdsim
