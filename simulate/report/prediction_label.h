// How a table calls predictions that stand side by side.
#pragma once

#include <span>
#include <string>

#include "simulate/prediction/prediction.h"

namespace tbdsim {

// The model's name; with its variant, where another prediction of the span is of the same model, framework
// and batch in another variant.
[[nodiscard]] std::string label_among(std::span<const Prediction> predictions, const Prediction& prediction);

}  // namespace tbdsim
