// Predictions for people, as CSV and as JSON (schema in the README).
#pragma once

#include <iosfwd>
#include <span>

#include "simulate/prediction.h"
#include "hwspecs/base/sheet.h"

namespace tbdsim {

void write_predictions(std::ostream& out, std::span<const Prediction> predictions, Format format);

}  // namespace tbdsim
