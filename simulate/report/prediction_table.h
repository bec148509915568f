// Predictions for people, as CSV and as JSON (schema in docs/formats.md).
#pragma once

#include <iosfwd>
#include <span>

#include "hwspecs/base/table.h"
#include "simulate/prediction/prediction.h"

namespace tbdsim {

void write_predictions(std::ostream& out, std::span<const Prediction> predictions, Format format);

}  // namespace tbdsim
