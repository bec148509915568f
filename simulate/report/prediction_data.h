// Predictions for programs: every metric as a row of CSV and as JSON (schema in docs/formats.md).
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include "hwspecs/base/table.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// A row for each prediction, a column for each metric; metrics of a target only where one is asked for.
[[nodiscard]] Table prediction_rows(std::span<const Prediction> predictions);

[[nodiscard]] nlohmann::ordered_json prediction_json(const Prediction& prediction);

}  // namespace tbdsim
