// Predictions for programs: every metric as a row of CSV and as JSON (schema in docs/formats.md).
#pragma once

#include <span>
#include <string>

#include "hwspecs/base/table.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

// A row for each prediction, a column for each metric; metrics of a target only where one is asked for.
[[nodiscard]] Table prediction_rows(std::span<const Prediction> predictions);

// A JSON document of them.
[[nodiscard]] std::string predictions_json(std::span<const Prediction> predictions);

}  // namespace tbdsim
