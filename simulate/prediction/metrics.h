// A metric is a row: name, unit, description, function. Every output loops over the table and knows none by
// name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

inline constexpr std::string_view kRatio = "1";  // the unit of ratios from 0 to 1

enum class MetricGroup { time, memory };

struct Metric {
  std::string_view name;
  MetricGroup group;
  std::string_view unit;  // "samples/s" stands for the model's own unit, e.g. images/s
  std::string_view description;
  std::optional<double> (*value)(const Prediction&);  // none where something it needs is not known
};

[[nodiscard]] std::span<const Metric> metrics();
[[nodiscard]] std::string unit_of(const Metric& metric, const Prediction& prediction);

// "images/s": the unit of a model's throughput.
[[nodiscard]] std::string throughput_unit(const ModelFile& model);

}  // namespace tbdsim
